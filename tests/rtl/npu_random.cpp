// Random programs of the instruction set's grammar on the RTL of a configuration and on the models.
//
//   rtl_npu_random CONFIGURATION FIRST_SEED PROGRAMS INSTRUCTIONS [BINS.csv]
//
// BINS.csv takes what the programs had executed of the instruction set: bin,hits.
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>

#include "tests/fuzz/random_npu_program.h"
#include "tests/rtl/npu_comparison.h"
#include "tests/rtl/program_coverage.h"

namespace {
using namespace candela;

template <typename T> T orExit(npu::Result<T> result, const std::string& what) {
  if (result) return *std::move(result);
  fmt::print(stderr, "{}: {}\n", what, result.message());
  std::exit(2);
}

int writeBins(const npu::ProgramCoverage& coverage, const char* path) {
  std::ofstream file(path);
  file << "bin,hits\n";
  for (const auto& [bin, hits] : coverage.bins()) file << bin << ',' << hits << '\n';
  file.close();
  if (file) return 0;
  fmt::print(stderr, "{}: it cannot be written\n", path);
  return 2;
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 5 && argc != 6)
    return fmt::print(stderr, "CONFIGURATION FIRST_SEED PROGRAMS INSTRUCTIONS [BINS.csv]\n"), 2;
  const npu::Configuration configuration = orExit(npu::findConfiguration(argv[1]), argv[1]);
  const auto library = orExit(rtl::rtlLibraryOf(configuration), argv[1]);
  const auto first = static_cast<uint32_t>(std::atoi(argv[2]));
  const int programs = std::atoi(argv[3]), instructions = std::atoi(argv[4]);
  int64_t cycles = 0;
  size_t ended = 0;
  npu::ProgramCoverage coverage(configuration);
  for (uint32_t seed = first; seed < first + static_cast<uint32_t>(programs); ++seed) {
    const npu::Binary binary = npu::randomProgram(configuration, seed, instructions);
    const std::string what = fmt::format("seed {}", seed);
    const rtl::NpuComparison run =
        orExit(rtl::compareNpu(configuration, binary, *library, {seed, seed % 2 == 1}), what);
    if (!run.difference.empty()) return fmt::print("{}: {}\n", what, run.difference), 1;
    if (const npu::Outcome bad = coverage.take(binary))
      return fmt::print(stderr, "{}: {}\n", what, bad->message), 2;
    cycles += run.cycles;
    ended += run.instructions;
  }
  fmt::print("{}: {} programs from seed {}, {} instructions, {} cycles: no difference\n",
             configuration.name, programs, first, ended, cycles);
  return argc == 6 ? writeBins(coverage, argv[5]) : 0;
}
