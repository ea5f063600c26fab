// Time of whole programs against what can be said of it with a pencil: bounds, order, and what must
// not change.
#include <gtest/gtest.h>

#include <algorithm>

#include "simulator/isa/assembler.h"
#include "simulator/npu_device.h"
#include "simulator/timing/schedule.h"
#include "tests/unit/simulator/tiled_layer.h"

namespace candela::npu {
namespace {

Configuration preset(const char* name) { return *findConfiguration(name); }

ScheduleOptions optionsOf(Fidelity fidelity, uint64_t maxEvents) {
  ScheduleOptions options;
  options.fidelity = fidelity;
  options.maxEvents = maxEvents;
  return options;
}
TimeReport timed(const Configuration& c, const Binary& binary,
                 Fidelity fidelity = Fidelity::kAccurate) {
  const Result<TimeReport> report = timeOf(c, binary, optionsOf(fidelity, uint64_t{1} << 33));
  if (!report) throw std::runtime_error(report.message());
  return *report;
}
int64_t cyclesOf(const Configuration& c, const TiledLayer& layer,
                 Fidelity fidelity = Fidelity::kAccurate) {
  return timed(c, layer.program(c), fidelity).cycles;
}

TEST(Schedule, NoProgramIsFasterThanItsArrayOrItsMemory) {
  for (const Preset& each : presets()) {
    const Configuration c = preset(std::string(each.name).c_str());
    for (const TiledLayer layer : {TiledLayer{64, 64, 64, 16, 16}, TiledLayer{128, 32, 128, 64, 16},
                                   TiledLayer{64, 128, 32, 8, 32}})
      for (const Fidelity fidelity : {Fidelity::kFast, Fidelity::kAccurate}) {
        ASSERT_TRUE(layer.fits(c)) << each.name;
        const TimeReport report = timed(c, layer.program(c), fidelity);
        EXPECT_GE(report.cycles, layer.macs() / (c.rows() * c.columns()));
        EXPECT_GE(static_cast<double>(report.cycles),
                  static_cast<double>(layer.bytes()) / report.dramBytesPerCycle);
        for (const EngineTime& engine : report.engines) EXPECT_LE(engine.busy, report.cycles);
      }
  }
}

TEST(Schedule, TheSameProgramIsFasterOnAWiderMemory) {
  const TiledLayer layer{512, 64, 16, 64, 16};
  Configuration c = preset("gem16");
  const Binary program = layer.program(c);
  for (const Fidelity fidelity : {Fidelity::kFast, Fidelity::kAccurate}) {
    int64_t before = INT64_MAX;
    for (const int64_t bits : {16, 32, 64}) {
      c.values[key::kDramWidthBits] = bits;
      const int64_t cycles = timed(c, program, fidelity).cycles;
      EXPECT_LT(cycles, before) << bits << " bits, " << fidelityName(fidelity);
      before = cycles;
    }
  }
}

TEST(Schedule, NarrowBeatsHoldTransfersUp) {
  const TiledLayer layer{512, 64, 16, 64, 16};
  Configuration c = preset("gem16");
  const Binary program = layer.program(c);
  const int64_t wide = timed(c, program).cycles;
  c.values[key::kDmaBeatBytes] = c[key::kDmaBurstBytes];
  EXPECT_EQ(timed(c, program).cycles, wide); // a burst is one beat
  int64_t before = wide;
  for (const int64_t beat : {8, 4, 2}) {
    c.values[key::kDmaBeatBytes] = beat;
    const int64_t accurate = timed(c, program).cycles,
                  fast = timed(c, program, Fidelity::kFast).cycles;
    EXPECT_GT(accurate, before) << beat;
    EXPECT_LE(10 * std::abs(fast - accurate), accurate)
        << beat << ": " << fast << " and " << accurate;
    before = accurate;
  }
}

TEST(Schedule, AChannelAboveTheArrayCostsAPass) {
  const Configuration c = preset("gem16");
  const auto matrix = [&](int64_t cout) {
    return timed(c, TiledLayer{64, 64, cout, 64, cout}.program(c))
        .engines[static_cast<size_t>(Engine::kMatrix)]
        .busy;
  };
  EXPECT_EQ(matrix(17) - matrix(16), 4 * 64);
  EXPECT_EQ(matrix(32) - matrix(17), 0);
}

TEST(Schedule, TwoBuffersHideTheLoads) {
  const Configuration c = preset("gem16");
  TiledLayer layer{1024, 64, 16, 64, 16};
  const TimeReport twice = timed(c, layer.program(c));
  layer.buffers = 1;
  const TimeReport once = timed(c, layer.program(c));
  EXPECT_LT(4 * twice.cycles, 3 * once.cycles);
  const auto matrix = [](const TimeReport& report) {
    return report.engines[static_cast<size_t>(Engine::kMatrix)];
  };
  EXPECT_LT(matrix(twice).stalls[static_cast<size_t>(Stall::kSemaphore)],
            matrix(once).stalls[static_cast<size_t>(Stall::kSemaphore)]);
}

TEST(Schedule, WhatStaysDependsOnWhatIsLarger) {
  const Configuration c = preset("edge4t");
  // Few pixels by many weights: weights come once for all pixels, or again for each tile of them.
  TiledLayer few{64, 512, 512, 16, 128}, many{4096, 64, 64, 512, 32};
  for (const Fidelity fidelity : {Fidelity::kFast, Fidelity::kAccurate}) {
    few.weightsStay = many.weightsStay = true;
    const int64_t fewWeights = cyclesOf(c, few, fidelity),
                  manyWeights = cyclesOf(c, many, fidelity);
    few.weightsStay = many.weightsStay = false;
    EXPECT_LT(fewWeights, cyclesOf(c, few, fidelity));
    EXPECT_GT(manyWeights, cyclesOf(c, many, fidelity));
  }
}

TEST(Schedule, RowsThatStayOpenAreFaster) {
  const Configuration c = preset("gem16");
  TiledLayer layer{1024, 64, 16, 256, 16};
  const TimeReport dense = timed(c, layer.program(c));
  layer.actStride = 4 * 8192 * 4; // another row of the same bank for each pixel
  const TimeReport apart = timed(c, layer.program(c));
  EXPECT_GT(apart.rowMisses, dense.rowMisses + 1000);
  EXPECT_GT(apart.cycles, 2 * dense.cycles);
}

TEST(Schedule, StallsSayWhatTheEngineWaitedFor) {
  const Configuration c = preset("gem16");
  TiledLayer layer{256, 64, 64, 64, 64};
  layer.buffers = 1;
  std::vector<InstructionTime> times;
  ScheduleOptions options;
  options.onRetire = [&](const InstructionTime& time) { times.push_back(time); };
  const Binary program = layer.program(c);
  const Result<TimeReport> report = timeOf(c, program, options);
  ASSERT_TRUE(report) << report.message();
  std::array<int64_t, kEngineCount> free{};
  int64_t last = 0;
  for (uint32_t i = 0; i < times.size(); ++i) {
    const InstructionTime& t = times[i];
    EXPECT_EQ(t.sequence, i);
    EXPECT_GE(t.done, last) << "in the order of ends";
    last = t.done;
    for (int k = 0; k < t.waitCount; ++k)
      EXPECT_LE(times[t.after[static_cast<size_t>(k)]].done, t.start);
    if (t.engine == 0) continue;
    const auto stall = [&](Stall by) { return t.stalls[static_cast<size_t>(by)]; };
    EXPECT_EQ(t.start - free[t.engine], stall(Stall::kQueue) + stall(Stall::kSemaphore))
        << "instruction " << t.instruction;
    free[t.engine] = t.done;
  }
  const EngineTime& matrix = report->engines[static_cast<size_t>(Engine::kMatrix)];
  EXPECT_GT(matrix.stalls[static_cast<size_t>(Stall::kSemaphore)],
            matrix.stalls[static_cast<size_t>(Stall::kQueue)]);
}

TEST(Schedule, FastOrdersTilingsAsAccurateDoes) {
  const Configuration c = preset("gem16");
  std::vector<std::pair<int64_t, int64_t>> times;
  double worst = 0;
  for (const int64_t tp : {16, 32, 64, 128, 256, 512})
    for (const int64_t tn : {8, 16, 32, 64, 128})
      for (const bool stay : {true, false}) {
        const TiledLayer layer{512, 128, 128, tp, tn, 2, stay};
        if (!layer.fits(c)) continue;
        times.push_back({cyclesOf(c, layer, Fidelity::kFast), cyclesOf(c, layer)});
        worst = std::max(worst, std::abs(static_cast<double>(times.back().first) /
                                             static_cast<double>(times.back().second) -
                                         1));
      }
  int64_t agree = 0, pairs = 0;
  for (size_t i = 0; i < times.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      const auto sign = [](int64_t v) { return (v > 0) - (v < 0); };
      agree += sign(times[i].first - times[j].first) * sign(times[i].second - times[j].second);
      ++pairs;
    }
  const double tau = static_cast<double>(agree) / static_cast<double>(pairs);
  RecordProperty("tilings", static_cast<int>(times.size()));
  std::printf("%zu tilings, tau %.3f, largest difference %.1f %%\n", times.size(), tau,
              100 * worst);
  EXPECT_GE(times.size(), 30u);
  EXPECT_GE(tau, 0.9);
}

TEST(Schedule, FastLetsReadsWaitForWrites) {
  for (const char* name : {"tiny", "edge4t"}) { // few reads under way, and many
    const Configuration c = preset(name);
    constexpr int64_t kRun = 4096, kTimes = 16;
    ProgramBuilder p(c);
    const auto bytes = static_cast<uint64_t>(kRun * kTimes);
    p.binary.regions = {{"constants", RegionClass::kConstants, bytes},
                        {"output", RegionClass::kOutput, bytes}};
    p.binary.constants.assign(bytes, std::byte{1});
    p.descriptor(0, DescriptorKind::kTransfer, {{"run", kRun}});
    for (int64_t i = 0; i < kTimes; ++i) {
      p.op("load", {{"region", 0}, {"far", i * kRun}, {"dst", 0}, {"d", 0}});
      p.op("store", {{"region", 1}, {"far", i * kRun}, {"src", kRun}, {"d", 0}});
    }
    p.op("halt", {});
    const TimeReport accurate = timed(c, p.binary), fast = timed(c, p.binary, Fidelity::kFast);
    const double apart =
        static_cast<double>(fast.cycles) / static_cast<double>(accurate.cycles) - 1;
    std::printf("%s: %lld cycles, fast %+.1f %%\n", name, static_cast<long long>(accurate.cycles),
                100 * apart);
    EXPECT_NEAR(apart, 0, 0.1) << name;
  }
}

TEST(Schedule, StoresBehindAllLoadsAreFasterThanAmongThem) {
  const Configuration c = preset("edge8t"); // LPDDR5, which turns around slowly
  constexpr int64_t kRun = 16384, kTimes = 16;
  const auto program = [&](bool isLast) {
    ProgramBuilder p(c);
    const auto bytes = static_cast<uint64_t>(kRun * kTimes);
    p.binary.regions = {{"constants", RegionClass::kConstants, bytes},
                        {"output", RegionClass::kOutput, bytes}};
    p.binary.constants.assign(bytes, std::byte{1});
    p.descriptor(0, DescriptorKind::kTransfer, {{"run", kRun}});
    const auto load = [&](int64_t i) {
      p.op("load", {{"region", 0}, {"far", i * kRun}, {"dst", 0}, {"d", 0}});
    };
    const auto store = [&](int64_t i) {
      p.op("store", {{"region", 1}, {"far", i * kRun}, {"src", kRun}, {"d", 0}});
    };
    for (int64_t i = 0; i < kTimes; ++i) {
      load(i);
      if (!isLast) store(i);
    }
    if (isLast) p.fence();
    for (int64_t i = 0; isLast && i < kTimes; ++i) store(i);
    p.op("halt", {});
    return p.binary;
  };
  const Binary among = program(false), last = program(true);
  const int64_t amongAccurate = timed(c, among).cycles, lastAccurate = timed(c, last).cycles;
  const int64_t amongFast = timed(c, among, Fidelity::kFast).cycles,
                lastFast = timed(c, last, Fidelity::kFast).cycles;
  EXPECT_LT(10 * lastAccurate, 9 * amongAccurate);
  EXPECT_LT(10 * lastFast, 9 * amongFast);
  EXPECT_LE(10 * std::abs(amongFast - amongAccurate), amongAccurate)
      << amongFast << " and " << amongAccurate;
  EXPECT_LE(20 * std::abs(lastFast - lastAccurate), lastAccurate)
      << lastFast << " and " << lastAccurate;
}

TEST(Schedule, ADeviceWithTimeHasTheSameValues) {
  const Configuration c = preset("gem16");
  const TiledLayer layer{128, 32, 64, 32, 32};
  const auto run = [&](Device& device) {
    EXPECT_FALSE(device.load(layer.program(c)));
    std::vector<std::byte> in(static_cast<size_t>(layer.pixels * layer.cin)),
        out(static_cast<size_t>(layer.pixels * layer.cout));
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::byte>(i * 7);
    EXPECT_FALSE(device.bind(1, in));
    EXPECT_FALSE(device.bind(2, out));
    const Result<RunReport> report = device.run();
    EXPECT_TRUE(report) << report.message();
    EXPECT_FALSE(report->fault) << report->fault->message;
    return std::pair(out, *report);
  };
  std::vector<std::vector<RetireRecord>> records(2);
  FunctionalOptions untimed;
  untimed.onRetire = [&](const RetireRecord& record) { records[0].push_back(record); };
  TimedOptions options;
  options.functional.onRetire = [&](const RetireRecord& record) { records[1].push_back(record); };
  const auto [values, plain] = run(*makeFunctionalDevice(c, untimed));
  const auto [same, report] = run(*makeTimedDevice(c, options));
  EXPECT_EQ(values, same);
  EXPECT_TRUE(
      std::any_of(values.begin(), values.end(), [](std::byte b) { return b != std::byte{0}; }));
  EXPECT_FALSE(plain.hasTime);
  ASSERT_TRUE(report.hasTime);
  EXPECT_EQ(report.counters[static_cast<size_t>(Counter::kCycles)],
            static_cast<uint64_t>(report.time->cycles));
  for (const CounterInfo& counter : kCounters)
    if (!counter.isTiming) {
      EXPECT_EQ(plain.counters[static_cast<size_t>(counter.id)],
                report.counters[static_cast<size_t>(counter.id)])
          << counter.name;
    }
  // Records are those of the functional model, in the order of ends.
  ASSERT_EQ(records[0].size(), records[1].size());
  std::array<std::vector<std::pair<uint64_t, uint64_t>>, 2> crcs;
  uint64_t done = 0;
  for (size_t i = 0; i < records[1].size(); ++i) {
    EXPECT_EQ(records[1][i][trace::kSequence], i);
    EXPECT_GE(records[1][i][trace::kDone], done);
    done = records[1][i][trace::kDone];
  }
  for (int side : {0, 1})
    for (const RetireRecord& r : records[static_cast<size_t>(side)])
      crcs[static_cast<size_t>(side)].push_back({r[trace::kInstruction], r[trace::kCrc]});
  for (auto& side : crcs) std::sort(side.begin(), side.end());
  EXPECT_EQ(crcs[0], crcs[1]);
  // Without values the same time and the same counts.
  options = {};
  options.hasValues = false;
  const RunReport without = run(*makeTimedDevice(c, options)).second;
  EXPECT_EQ(without.time->cycles, report.time->cycles);
  EXPECT_EQ(without.counters, report.counters);
}

TEST(Schedule, CountsAreThoseOfTheFunctionalModel) {
  const Configuration c = preset("gem16");
  ProgramBuilder p(c);
  p.binary.regions = {{"in", RegionClass::kInput, 8192}, {"out", RegionClass::kOutput, 8192}};
  p.descriptor(0, DescriptorKind::kTransfer, {{"run", 8192}});
  p.op("load", {{"d", 0}});
  p.descriptor(1, DescriptorKind::kTransfer,
               {{"run", 8},
                {"len1", 5},
                {"len2", 3},
                {"far_stride1", 16},
                {"far_stride2", 100},
                {"near_stride1", 8},
                {"near_stride2", 64},
                {"pad_left", 1},
                {"pad_right", 2},
                {"pad_bottom", 1},
                {"len3", 2},
                {"near_stride3", 256}});
  p.op("load", {{"far", 64}, {"dst", 8192}, {"d", 1}});
  p.op("copy", {{"src", 64}, {"dst", 9216}, {"d", 1}});
  p.op("fill", {{"dst", 10240}, {"d", 1}});
  p.fence();
  const Fields window = {
      {"in_h", 6},         {"in_w", 7},          {"out_h", 3},         {"out_w", 3},
      {"cin", 20},         {"cout", 24},         {"kernel_h", 2},      {"kernel_w", 2},
      {"stride_h", 2},     {"stride_w", 3},      {"pad_top", 1},       {"pad_left", 1},
      {"row_stride", 140}, {"pixel_stride", 20}, {"weight_pitch", 24}, {"acc_pitch", 9}};
  p.descriptor(2, DescriptorKind::kWindow, window);
  p.op("conv", {{"act", 0}, {"wgt", 2048}, {"d", 2}});
  p.op("dwconv", {{"act", 0}, {"wgt", 2048}, {"acc", 100}, {"d", 2}});
  p.op("ldw", {{"k", 10}, {"n", 12}, {"wgt", 2048}, {"d", 2}});
  p.op("mm", {{"acc", 200}, {"swap", 1}, {"d", 2}});
  p.fence();
  p.descriptor(3, DescriptorKind::kEpilogue,
               {{"out_h", 2},
                {"out_w", 2},
                {"in_h", 3},
                {"in_w", 3},
                {"channels", 24},
                {"acc_pitch", 9},
                {"pool_h", 2},
                {"pool_w", 2},
                {"row_stride", 48},
                {"pixel_stride", 24},
                {"low", -128},
                {"high", 127}});
  p.descriptor(4, DescriptorKind::kRescale,
               {{"row_stride", 48}, {"pixel_stride", 24}, {"low", -128}, {"high", 127}});
  p.op("requant", {{"acc", 0},
                   {"dst", 12288},
                   {"res", 4096},
                   {"residual", 1},
                   {"table", 1},
                   {"d", 3},
                   {"r", 4}});
  p.descriptor(5, DescriptorKind::kEpilogue,
               {{"out_h", 3},
                {"out_w", 3},
                {"channels", 20},
                {"acc_pitch", 9},
                {"row_stride", 240},
                {"pixel_stride", 80}});
  p.op("accstore", {{"acc", 100}, {"dst", 13312}, {"d", 5}});
  p.op("accload", {{"acc", 300}, {"src", 13312}, {"d", 5}});
  p.descriptor(6, DescriptorKind::kLanes,
               {{"run", 10},
                {"len1", 3},
                {"len2", 4},
                {"a_stride1", 10},
                {"a_stride2", 0},
                {"b_stride1", 0},
                {"b_stride2", 1},
                {"out_stride1", 10},
                {"out_stride2", 40},
                {"b_scalar", 1},
                {"a_type", 1}});
  p.op("vbinary", {{"a", 0}, {"b", 512}, {"dst", 16384}, {"d", 6}});
  p.op("vselect", {{"a", 0}, {"b", 512}, {"dst", 16384}, {"d", 6}});
  p.op("vreduce", {{"a", 0}, {"dst", 17408}, {"d", 6}});
  p.op("vunary", {{"a", 0}, {"b", 1024}, {"dst", 18432}, {"fn", 4}, {"d", 6}});
  p.descriptor(8, DescriptorKind::kPooling,
               {{"in_h", 6},
                {"in_w", 7},
                {"out_h", 3},
                {"out_w", 3},
                {"channels", 5},
                {"kernel_h", 2},
                {"kernel_w", 1},
                {"stride_h", 2},
                {"stride_w", 3},
                {"in_row_stride", 35},
                {"in_pixel_stride", 5},
                {"out_row_stride", 15},
                {"out_pixel_stride", 5}});
  p.op("vpool", {{"a", 0}, {"dst", 19456}, {"d", 8}});
  p.fence();
  p.descriptor(9, DescriptorKind::kTransfer,
               {{"run", 16}, {"len1", 4}, {"far_stride1", 64}, {"near_stride1", 0}});
  p.op("store", {{"region", 1}, {"src", 16384}, {"d", 9}});
  p.op("halt", {});
  std::vector<std::vector<std::pair<uint32_t, Counters>>> counted(2);
  std::vector<Counters> totals;
  for (const bool hasValues : {true, false}) {
    TimedOptions options;
    options.hasValues = hasValues;
    options.functional.onCounted = [&](uint32_t instruction, const Counters& counters) {
      counted[hasValues].push_back({instruction, counters});
    };
    const auto device = makeTimedDevice(c, options);
    ASSERT_FALSE(device->load(p.binary));
    std::vector<std::byte> in(8192, std::byte{1}), out(8192);
    ASSERT_FALSE(device->bind(0, in));
    ASSERT_FALSE(device->bind(1, out));
    const Result<RunReport> report = device->run();
    ASSERT_TRUE(report) << report.message();
    ASSERT_FALSE(report->fault) << report->fault->message;
    totals.push_back(report->counters);
  }
  for (auto& each : counted) std::sort(each.begin(), each.end());
  ASSERT_EQ(counted[0].size(), counted[1].size());
  for (size_t i = 0; i < counted[0].size(); ++i)
    for (const CounterInfo& counter : kCounters)
      EXPECT_EQ(counted[0][i].second[static_cast<size_t>(counter.id)],
                counted[1][i].second[static_cast<size_t>(counter.id)])
          << counter.name << " of instruction " << counted[0][i].first << ", "
          << insnText(*decode(p.binary.code[counted[0][i].first]));
  EXPECT_EQ(totals[0], totals[1]);
}

TEST(Schedule, PaddingSharesNoWordWithWhatItStandsBeside) {
  const Configuration c = preset("gem16"); // words of 16 bytes
  const auto cyclesOf = [&](const char* op, int64_t stride) {
    ProgramBuilder p(c);
    p.descriptor(0, DescriptorKind::kTransfer,
                 {{"run", 3},
                  {"len1", 5},
                  {"len2", 2},
                  {"len3", 2},
                  {"far_stride1", 3},
                  {"far_stride2", 15},
                  {"far_stride3", 30},
                  {"near_stride1", stride},
                  {"near_stride2", 8 * stride},
                  {"near_stride3", 24 * stride},
                  {"pad_left", 1},
                  {"pad_right", 2},
                  {"pad_top", 1}});
    p.op(op, {{"dst", 4096}, {"d", 0}});
    p.op("halt", {});
    return timed(c, p.binary).engines[static_cast<size_t>(Engine::kLoad0)].busy;
  };
  const int64_t around = valueOf(Timing::kDmaSetup) + valueOf(Timing::kDmaPipeline);
  // A row of 3, 15 and 6 bytes, one of 24 above it; or 8 runs each.
  EXPECT_EQ(cyclesOf("fill", 3), around + 2 * (2 + 2 * (1 + 1 + 1)));
  EXPECT_EQ(cyclesOf("fill", 4), around + 2 * (8 + 2 * 8));
  // A copy has all it needs while it writes the row above, and again behind each word.
  EXPECT_EQ(cyclesOf("copy", 3), cyclesOf("fill", 3));
  EXPECT_EQ(cyclesOf("copy", 4), cyclesOf("fill", 4));
}

TEST(Schedule, BadProgramsAreErrors) {
  const Configuration c = preset("gem16");
  const auto messageOf = [&](auto build) {
    ProgramBuilder p(c);
    p.binary.regions = {{"input", RegionClass::kInput, 64}};
    build(p);
    const Result<TimeReport> report = timeOf(c, p.binary, optionsOf(Fidelity::kAccurate, 1000));
    return report ? std::string() : report.message();
  };
  EXPECT_EQ(messageOf([](ProgramBuilder&) {}), "the program ends without halt");
  EXPECT_EQ(messageOf([](ProgramBuilder& p) {
              p.descriptor(0, DescriptorKind::kTransfer, {{"run", 65}});
              p.op("load", {{"d", 0}});
              p.op("halt", {});
            }),
            "instruction 4: bytes 0..64 of region 'input', which has 64");
  EXPECT_EQ(messageOf([](ProgramBuilder& p) {
              p.descriptor(0, DescriptorKind::kTransfer,
                           {{"run", 1 << 16}, {"len1", 1 << 16}, {"len2", 1 << 16}});
              p.op("fill", {{"d", 0}});
              p.op("halt", {});
            }),
            "instruction 4: a transfer of 281474976710656 bytes");
  const std::string deadlock = messageOf([](ProgramBuilder& p) {
    p.op("nop", {}, {3, 1}, {}, static_cast<int>(Engine::kMatrix));
    p.op("halt", {});
  });
  EXPECT_EQ(deadlock.substr(0, 18), "deadlock at cycle ");
  EXPECT_EQ(
      deadlock.substr(deadlock.find(':')),
      ": control stands at instruction 1; matrix waits for 1 of s3, which has 0, at instruction 0");
  EXPECT_EQ(messageOf([](ProgramBuilder& p) {
              p.op("loop", {{"count", 60000}, {"length", 1}});
              p.op("movi", {{"x", 1}});
              p.op("halt", {});
            }),
            "more than 1000 words and bursts");
}

} // namespace
} // namespace candela::npu
