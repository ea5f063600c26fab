// Random programs that are right: they halt, and plain and AVX2 kernels write the same, instruction
// by instruction.
#include <gtest/gtest.h>

#include <cstdlib>

#include "simulator/isa/assembler.h"
#include "simulator/npu_device.h"
#include "tests/fuzz/random_npu_program.h"

namespace candela::npu {
namespace {

constexpr uint64_t kSeed = 5150;
constexpr int kPrograms = 200, kInstructions = 60;

struct Ran {
  RunReport report;
  std::vector<std::byte> out;
  std::vector<RetireRecord> trace;
};

Ran run(const Configuration& configuration, const Binary& binary, uint64_t seed, bool plain) {
  Ran ran;
  FunctionalOptions options;
  options.plainKernels = plain;
  options.onRetire = [&](const RetireRecord& record) { ran.trace.push_back(record); };
  const auto device = makeFunctionalDevice(configuration, options);
  const Outcome bad = device->load(binary);
  EXPECT_FALSE(bad) << bad->message;
  std::mt19937_64 random(seed);
  std::vector<std::byte> in(binary.regions[1].bytes);
  for (std::byte& byte : in) byte = static_cast<std::byte>(random());
  ran.out.resize(binary.regions[2].bytes);
  EXPECT_FALSE(device->bind(1, in));
  EXPECT_FALSE(device->bind(2, ran.out));
  const Result<RunReport> report = device->run();
  EXPECT_TRUE(report);
  if (report) ran.report = *report;
  return ran;
}

/// CANDELA_FUZZ_SEED runs one program alone.
std::vector<uint64_t> seeds() {
  if (const char* one = std::getenv("CANDELA_FUZZ_SEED")) return {std::strtoull(one, nullptr, 10)};
  std::vector<uint64_t> all;
  for (uint64_t i = 0; i < kPrograms; ++i) all.push_back(kSeed + i);
  return all;
}

TEST(NpuPrograms, HaltAndWriteTheSameByAllKernels) {
  std::array<int, 256> seen{};
  size_t instructions = 0;
  for (const uint64_t seed : seeds()) {
    std::mt19937_64 random(seed);
    const Configuration configuration = randomConfiguration(random);
    const Binary binary = randomProgram(configuration, seed, kInstructions);
    const Ran best = run(configuration, binary, seed, false),
              plain = run(configuration, binary, seed, true);
    ASSERT_FALSE(best.report.fault) << best.report.fault->message << " seed " << seed;
    ASSERT_FALSE(plain.report.fault) << plain.report.fault->message << " seed " << seed;
    ASSERT_EQ(best.trace.size(), plain.trace.size());
    for (size_t i = 0; i < best.trace.size(); ++i)
      ASSERT_EQ(best.trace[i], plain.trace[i])
          << insnText(*decode(binary.code[best.trace[i][trace::kInstruction]])) << " seed " << seed
          << "\n"
          << traceLine(best.trace[i], false) << traceLine(plain.trace[i], false);
    ASSERT_EQ(best.out, plain.out) << "seed " << seed;
    ASSERT_EQ(best.report.counters, plain.report.counters) << "seed " << seed;
    for (const RetireRecord& record : best.trace) ++seen[record[trace::kOpcode]];
    instructions += best.trace.size();
    if (seed % 20) continue; // 64 KiB of constants are long to read
    const Result<Binary> again = assemble(*disassemble(binary), "round.npu", configuration);
    ASSERT_TRUE(again) << again.message();
    ASSERT_EQ(*again, binary) << "seed " << seed;
  }
  std::printf("seeds from %llu: %zu instructions\n", static_cast<unsigned long long>(kSeed),
              instructions);
  if (std::getenv("CANDELA_FUZZ_SEED")) return;
  for (const OpInfo& info : std::span(kOpTable).first(kHardwareOps))
    EXPECT_GE(seen[static_cast<size_t>(info.op)], 150) << info.name;
}

/// The order in these programs is needed: without its tokens hardly one of them is let through.
TEST(NpuPrograms, AreStoppedWithoutTheirTokens) {
  int races = 0;
  for (const uint64_t seed : seeds()) {
    std::mt19937_64 random(seed);
    const Configuration configuration = randomConfiguration(random);
    Binary binary = randomProgram(configuration, seed, kInstructions);
    for (Word& word : binary.code) {
      Insn insn = *decode(word);
      insn.waitCount = insn.waitSemaphore = insn.signalCount = insn.signalSemaphore = 0;
      word = *encode(insn);
    }
    const Ran ran = run(configuration, binary, seed, false);
    races += ran.report.fault && ran.report.fault->kind == FaultKind::kRace;
  }
  EXPECT_GT(races, static_cast<int>(seeds().size() * 9 / 10) - 1);
}

} // namespace
} // namespace candela::npu
