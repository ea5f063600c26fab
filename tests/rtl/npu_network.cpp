// A compiled program on the RTL of a configuration and on the models: bytes, counters, and the
// cycles of each instruction must be the same.
//
//   rtl_npu_network CONFIGURATION PROGRAM.npubin [ROWS.csv]
//
// It runs with the configuration's DRAM and with a memory of random latency; with ROWS.csv with the
// DRAM alone, and the file takes the cycles of the hardware and of --fidelity accurate by operation
// and by layer.
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "tests/rtl/npu_accuracy.h"
#include "tests/rtl/npu_comparison.h"

namespace {
using namespace candela;

constexpr uint32_t kSeed = 20261126;

template <typename T> T orExit(npu::Result<T> result, const char* what) {
  if (result) return *std::move(result);
  fmt::print(stderr, "{}: {}\n", what, result.message());
  std::exit(2);
}

npu::Binary readProgram(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> text{std::istreambuf_iterator<char>(file), {}};
  return orExit(npu::readBinary(std::as_bytes(std::span(text))), path);
}

bool writeRows(const char* path, const npu::Binary& binary, const rtl::NpuComparison& run) {
  std::ofstream file(path);
  file << "kind,name,instructions,hardware,accurate\n";
  for (const rtl::AccuracyRow& row : rtl::accuracyOf(binary, run.times, run.accurateTimes))
    file << fmt::format("{},\"{}\",{},{},{}\n", row.kind, row.name, row.instructions, row.hardware,
                        row.accurate);
  file.close();
  if (!file) fmt::print(stderr, "{}: it cannot be written\n", path);
  return static_cast<bool>(file);
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4)
    return fmt::print(stderr, "CONFIGURATION PROGRAM.npubin [ROWS.csv]\n"), 2;
  const npu::Configuration configuration = orExit(npu::findConfiguration(argv[1]), argv[1]);
  const npu::Binary binary = readProgram(argv[2]);
  const auto library = orExit(rtl::rtlLibraryOf(configuration), argv[1]);
  for (const bool isRandom : {false, true}) {
    if (isRandom && argc == 4) break;
    const rtl::NpuComparison run =
        orExit(rtl::compareNpu(configuration, binary, *library, {kSeed, isRandom}), argv[2]);
    const char* const memory = isRandom ? "a memory of random latency" : "its DRAM";
    fmt::print("{} with {}, seed {}: {} instructions, {} cycles, {:.1f} kcycles/s\n",
               configuration.name, memory, kSeed, run.instructions, run.cycles,
               static_cast<double>(run.cycles) / run.seconds / 1000);
    if (!run.difference.empty()) return fmt::print("{}\n", run.difference), 1;
    if (!isRandom)
      fmt::print("  --fidelity accurate has {} cycles, {:+.2f} %\n", run.accurateCycles,
                 100.0 * static_cast<double>(run.accurateCycles - run.cycles) /
                     static_cast<double>(run.cycles));
    if (argc == 4 && !writeRows(argv[3], binary, run)) return 2;
  }
  return 0;
}
