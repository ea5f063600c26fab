// The SystemC engine against the timed one: the same memory, faults, counters, and each instruction
// in the same cycles.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <thread>

#include "simulator/isa/assembler.h"
#include "simulator/npu_device.h"
#include "tests/fuzz/random_npu_program.h"
#include "tests/unit/simulator/tiled_layer.h"

namespace candela::npu {
namespace {

struct Ran {
  RunReport report;
  std::string error;
  std::vector<std::vector<std::byte>> memory;
  std::vector<RetireRecord> records;
  std::vector<InstructionTime> times;
};

using Maker = std::unique_ptr<Device> (*)(Configuration, TimedOptions);

Ran run(Maker make, const Configuration& configuration, const Binary& binary, Fidelity fidelity,
        uint64_t seed = 1) {
  Ran ran;
  TimedOptions options;
  options.fidelity = fidelity;
  options.functional.onRetire = [&](const RetireRecord& record) { ran.records.push_back(record); };
  options.onTime = [&](const InstructionTime& time) { ran.times.push_back(time); };
  const auto device = make(configuration, options);
  const Outcome bad = device->load(binary);
  EXPECT_FALSE(bad) << bad->message;
  std::mt19937_64 random(seed);
  ran.memory.resize(binary.regions.size());
  for (uint32_t i = 0; i < binary.regions.size(); ++i) {
    if (binary.regions[i].kind == RegionClass::kConstants) continue;
    ran.memory[i].resize(binary.regions[i].bytes);
    for (std::byte& byte : ran.memory[i]) byte = static_cast<std::byte>(random());
    EXPECT_FALSE(device->bind(i, ran.memory[i]));
  }
  const Result<RunReport> report = device->run();
  if (report)
    ran.report = *report;
  else
    ran.error = report.message();
  return ran;
}

void expectEqual(const Ran& systemc, const Ran& timed, const std::string& what) {
  ASSERT_EQ(systemc.error, timed.error) << what;
  ASSERT_EQ(systemc.report.fault.has_value(), timed.report.fault.has_value())
      << what << (systemc.report.fault ? systemc.report.fault->message : "");
  ASSERT_EQ(systemc.memory, timed.memory) << what;
  ASSERT_EQ(systemc.report.counters, timed.report.counters) << what;
  ASSERT_EQ(systemc.records, timed.records) << what;
  ASSERT_TRUE(systemc.report.time && timed.report.time) << what;
  const TimeReport &a = *systemc.report.time, &b = *timed.report.time;
  EXPECT_EQ(a.cycles, b.cycles) << what;
  EXPECT_EQ(a.tagged, b.tagged) << what;
  EXPECT_EQ(std::tie(a.dramBytes, a.dramBursts, a.rowHits, a.rowMisses, a.refreshes, a.dramBusy),
            std::tie(b.dramBytes, b.dramBursts, b.rowHits, b.rowMisses, b.refreshes, b.dramBusy))
      << what;
  ASSERT_EQ(systemc.times.size(), timed.times.size()) << what;
  for (size_t i = 0; i < systemc.times.size(); ++i) {
    const InstructionTime &x = systemc.times[i], &y = timed.times[i];
    ASSERT_EQ(std::tie(x.sequence, x.instruction, x.start, x.done, x.stalls, x.after),
              std::tie(y.sequence, y.instruction, y.start, y.done, y.stalls, y.after))
        << what << ", instruction " << x.instruction;
  }
}

TEST(Systemc, RandomProgramsAreThoseOfTheTimedDevice) {
  constexpr uint64_t kSeed = 8100;
  size_t instructions = 0;
  for (uint64_t seed = kSeed; seed < kSeed + 60; ++seed) {
    std::mt19937_64 random(seed);
    const Configuration configuration = randomConfiguration(random);
    const Binary binary = randomProgram(configuration, seed, 60);
    for (const Fidelity fidelity : {Fidelity::kFast, Fidelity::kAccurate}) {
      const Ran systemc = run(makeSystemcDevice, configuration, binary, fidelity, seed);
      expectEqual(systemc, run(makeTimedDevice, configuration, binary, fidelity, seed),
                  fmt::format("seed {}, {}", seed, fidelityName(fidelity)));
      if (HasFatalFailure()) return;
      instructions += systemc.records.size();
    }
  }
  std::printf("seeds from %llu: %zu instructions\n", static_cast<unsigned long long>(kSeed),
              instructions);
}

/// Clocks of which a cycle is no number of picoseconds, and memories of all kinds.
TEST(Systemc, LayersTakeTheSameCyclesOnEachPreset) {
  for (const Preset& each : presets()) {
    const Configuration configuration = *findConfiguration(std::string(each.name));
    const Binary binary = TiledLayer{128, 32, 128, 64, 16}.program(configuration);
    for (const Fidelity fidelity : {Fidelity::kFast, Fidelity::kAccurate}) {
      expectEqual(run(makeSystemcDevice, configuration, binary, fidelity),
                  run(makeTimedDevice, configuration, binary, fidelity), std::string(each.name));
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Systemc, ProgramsThatAreWrongStopByTheSameFault) {
  constexpr uint64_t kSeed = 9100;
  std::map<FaultKind, int> faults;
  for (uint64_t seed = kSeed; seed < kSeed + 120; ++seed) {
    std::mt19937_64 random(seed);
    const Configuration configuration = randomConfiguration(random);
    Binary binary = randomProgram(configuration, seed, 60);
    // One word forgets to wait, or to signal, or the memory shrinks.
    const uint64_t kind = seed % 3;
    for (uint64_t tries = 0; kind < 2 && tries < 1000; ++tries) {
      Word& word = binary.code[random() % binary.code.size()];
      Insn insn = *decode(word);
      if ((kind == 0 ? insn.waitCount : insn.signalCount) == 0) continue;
      // Those order nothing that matters.
      if (std::max(insn.waitSemaphore, insn.signalSemaphore) >= kControlSemaphores) continue;
      if (kind == 0)
        insn.waitCount = insn.waitSemaphore = 0;
      else
        insn.signalCount = insn.signalSemaphore = 0;
      word = *encode(insn);
      break;
    }
    if (kind == 2) binary.regions[1 + random() % 2].bytes /= 4;
    const Ran systemc = run(makeSystemcDevice, configuration, binary, Fidelity::kAccurate, seed);
    const Ran timed = run(makeTimedDevice, configuration, binary, Fidelity::kAccurate, seed);
    EXPECT_EQ(systemc.error, timed.error) << "seed " << seed;
    ASSERT_EQ(systemc.report.fault.has_value(), timed.report.fault.has_value()) << "seed " << seed;
    ASSERT_EQ(systemc.records.size(), systemc.times.size()) << "seed " << seed; // what ended before
    for (const RetireRecord& record : systemc.records)
      ASSERT_EQ(record[trace::kOpcode],
                static_cast<uint64_t>(decode(binary.code.at(record[trace::kInstruction]))->op));
    if (!timed.report.fault) continue;
    EXPECT_EQ(systemc.report.fault->kind, timed.report.fault->kind)
        << "seed " << seed << "\n"
        << systemc.report.fault->message << "\n"
        << timed.report.fault->message;
    EXPECT_NE(systemc.report.fault->message.find("instruction "), std::string::npos);
    ++faults[timed.report.fault->kind];
  }
  std::printf("seeds from %llu\n", static_cast<unsigned long long>(kSeed));
  for (const FaultKind kind : {FaultKind::kRange, FaultKind::kRace, FaultKind::kDeadlock})
    EXPECT_GE(faults[kind], 10) << faultName(kind);
}

TEST(Systemc, RefusesTheFidelityThatItHasNot) {
  const Configuration configuration = *findConfiguration("gem16");
  const Binary binary = TiledLayer{64, 64, 64, 16, 16}.program(configuration);
  const Ran exact = run(makeSystemcDevice, configuration, binary, Fidelity::kExact);
  EXPECT_NE(exact.error.find("the fidelity is exact"), std::string::npos) << exact.error;
  const Ran after = run(makeSystemcDevice, configuration, binary, Fidelity::kAccurate);
  expectEqual(after, run(makeTimedDevice, configuration, binary, Fidelity::kAccurate), "after it");
}

TEST(Systemc, AnyThreadMayRunIt) {
  const Configuration configuration = *findConfiguration("gem16");
  const Binary binary = TiledLayer{64, 64, 64, 16, 16}.program(configuration);
  const Ran here = run(makeSystemcDevice, configuration, binary, Fidelity::kAccurate);
  std::vector<Ran> there(4);
  std::vector<std::thread> threads;
  for (Ran& ran : there)
    threads.emplace_back(
        [&] { ran = run(makeSystemcDevice, configuration, binary, Fidelity::kAccurate); });
  for (std::thread& thread : threads) thread.join();
  for (const Ran& ran : there) expectEqual(ran, here, "another thread");
}

} // namespace
} // namespace candela::npu
