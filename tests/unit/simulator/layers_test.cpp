// Whole layers as a compiler would write them: tiles, two buffers, semaphores, every check on,
// against loops over the layer. And the order that semaphores give.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "simulator/npu_device.h"
#include "tests/unit/simulator/program_builder.h"

namespace candela::npu {
namespace {

constexpr uint64_t kSeed = 77;

struct Result8 {
  std::vector<int8_t> values;
  Counters counters;
};

int64_t roundedShift(int64_t value, int64_t shift) {
  const int64_t unit = int64_t{1} << shift;
  int64_t down = value / unit, rest = value % unit;
  if (rest < 0) rest += unit, --down;
  return down + (2 * rest > unit || (2 * rest == unit && down % 2 != 0));
}
int64_t clamped(int64_t value) { return value < -128 ? -128 : value > 127 ? 127 : value; }

class Layers : public testing::Test {
protected:
  std::mt19937 random{kSeed};
  std::vector<int8_t> bytes(size_t count) {
    std::vector<int8_t> values(count);
    for (int8_t& value : values) value = static_cast<int8_t>(random());
    return values;
  }
  static void append(std::vector<std::byte>& to, const void* from, size_t count) {
    const auto* at = static_cast<const std::byte*>(from);
    to.insert(to.end(), at, at + count);
  }
  /// bias, 2^23 and a shift of each channel.
  static void appendParams(std::vector<std::byte>& to, const std::vector<int32_t>& bias,
                           uint32_t shift) {
    for (const int32_t value : bias) {
      const uint32_t packed = 0x800000 | shift << 24;
      append(to, &value, 4);
      append(to, &packed, 4);
    }
  }
  static Result8 run(const Configuration& c, ProgramBuilder& p, std::vector<int8_t> in,
                     size_t outBytes) {
    p.op("halt", {});
    const auto device = makeFunctionalDevice(c);
    const Outcome bad = device->load(p.binary);
    EXPECT_FALSE(bad) << bad->message;
    Result8 result{std::vector<int8_t>(outBytes), {}};
    EXPECT_FALSE(device->bind(1, std::as_writable_bytes(std::span(in))));
    EXPECT_FALSE(device->bind(2, std::as_writable_bytes(std::span(result.values))));
    const Result<RunReport> report = device->run();
    EXPECT_TRUE(report);
    EXPECT_FALSE(report->fault) << report->fault->message;
    result.counters = report->counters;
    return result;
  }
};

TEST_F(Layers, ResidualConvolutionInTilesWithTwoBuffers) {
  constexpr int64_t kSize = 16, kIn = 24, kOut = 40, kTile = 4, kShift = 31;
  const Configuration c = *findConfiguration("gem16");
  const std::vector<int8_t> x = bytes(kSize * kSize * kIn), residual = bytes(kSize * kSize * kOut),
                            w = bytes(9 * kIn * kOut);
  std::vector<int32_t> bias(kOut);
  for (int32_t& value : bias) value = static_cast<int32_t>(random() % 20001) - 10000;
  ProgramBuilder p(c);
  appendParams(p.binary.constants, bias, kShift);
  append(p.binary.constants, w.data(), w.size());
  p.binary.regions = {{"weights", RegionClass::kConstants, p.binary.constants.size()},
                      {"in", RegionClass::kInput, x.size() + residual.size()},
                      {"out", RegionClass::kOutput, residual.size()}};
  constexpr int64_t kParams = 0, kWeights = 1024, kActs[2] = {16384, 24576},
                    kResiduals[2] = {32768, 40960};
  p.descriptor(0, DescriptorKind::kTransfer, {{"run", 8 * kOut}});
  p.op("load", {{"dst", kParams}, {"d", 0}});
  p.descriptor(0, DescriptorKind::kTransfer, {{"run", 9 * kIn * kOut}});
  p.op("load", {{"far", 8 * kOut}, {"dst", kWeights}, {"d", 0}});
  // s0: loaded, s1: multiplied, s2: acts free, s3: requantized, s4: residual and accumulator free,
  // s5: stored.
  for (int64_t tile = 0; tile < kSize / kTile; ++tile) {
    const int64_t half = tile % 2, from = std::max<int64_t>(tile * kTile - 1, 0),
                  to = std::min(tile * kTile + kTile + 1, kSize), rows = to - from;
    const Tokens free = tile < 2 ? Tokens{} : Tokens{5, 1};
    p.descriptor(0, DescriptorKind::kTransfer, {{"run", rows * kSize * kIn}});
    p.op("load", {{"region", 1}, {"far", from * kSize * kIn}, {"dst", kActs[half]}, {"d", 0}},
         free);
    p.descriptor(0, DescriptorKind::kTransfer, {{"run", kTile * kSize * kOut}});
    p.op("load",
         {{"region", 1},
          {"far", static_cast<int64_t>(x.size()) + tile * kTile * kSize * kOut},
          {"dst", kResiduals[half]},
          {"d", 0}},
         {}, {0, 1});
    p.descriptor(1, DescriptorKind::kWindow,
                 {{"in_h", rows},
                  {"in_w", kSize},
                  {"out_h", kTile},
                  {"out_w", kSize},
                  {"cin", kIn},
                  {"cout", kOut},
                  {"kernel_h", 3},
                  {"kernel_w", 3},
                  {"pad_top", tile == 0},
                  {"pad_left", 1},
                  {"row_stride", kSize * kIn},
                  {"pixel_stride", kIn},
                  {"weight_pitch", kOut},
                  {"acc_pitch", kTile * kSize},
                  {"a_zp", 5}});
    p.op("conv", {{"acc", half * 256}, {"act", kActs[half]}, {"wgt", kWeights}, {"d", 1}}, {0, 1},
         {1, 1});
    p.descriptor(2, DescriptorKind::kEpilogue,
                 {{"out_h", kTile},
                  {"out_w", kSize},
                  {"channels", kOut},
                  {"in_h", kTile},
                  {"in_w", kSize},
                  {"acc_pitch", kTile * kSize},
                  {"row_stride", kSize * kOut},
                  {"pixel_stride", kOut},
                  {"params", kParams},
                  {"zp", 7},
                  {"low", -128},
                  {"high", 127}});
    p.descriptor(3, DescriptorKind::kRescale,
                 {{"a_mult", 0xc00000},
                  {"b_mult", 0x900001},
                  {"b_shift", 1},
                  {"shift", 24},
                  {"b_zp", -9},
                  {"zp", -20},
                  {"low", -20},
                  {"high", 127},
                  {"row_stride", kSize * kOut},
                  {"pixel_stride", kOut}});
    p.op("requant",
         {{"acc", half * 256},
          {"dst", kResiduals[half]},
          {"res", kResiduals[half]},
          {"d", 2},
          {"r", 3},
          {"residual", 1}},
         {1, 1}, {3, 1});
    p.op("store",
         {{"region", 2}, {"far", tile * kTile * kSize * kOut}, {"src", kResiduals[half]}, {"d", 0}},
         {3, 1}, {5, 1});
  }
  std::vector<int8_t> in = x;
  in.insert(in.end(), residual.begin(), residual.end());
  const Result8 result = run(c, p, in, residual.size());
  for (int64_t y = 0; y < kSize; ++y)
    for (int64_t col = 0; col < kSize; ++col)
      for (int64_t n = 0; n < kOut; ++n) {
        int64_t sum = bias[n];
        for (int64_t ky = 0; ky < 3; ++ky)
          for (int64_t kx = 0; kx < 3; ++kx) {
            const int64_t iy = y + ky - 1, ix = col + kx - 1;
            if (iy < 0 || iy >= kSize || ix < 0 || ix >= kSize) continue;
            for (int64_t i = 0; i < kIn; ++i)
              sum += (x[(iy * kSize + ix) * kIn + i] - 5) * w[((ky * 3 + kx) * kIn + i) * kOut + n];
          }
        const int64_t q = clamped(roundedShift(sum * 0x800000, kShift) + 7),
                      at = (y * kSize + col) * kOut + n;
        const int64_t both = (q - 7) * 0xc00000 + (residual[at] + 9) * int64_t{0x900001} * 2;
        const int64_t expected = std::max<int64_t>(-20, clamped(roundedShift(both, 24) - 20));
        ASSERT_EQ(result.values[at], expected) << "y " << y << " x " << col << " channel " << n;
      }
  const auto count = [&](Counter counter) { return result.counters[static_cast<int>(counter)]; };
  EXPECT_EQ(count(Counter::kMacs), uint64_t{kSize * kSize * 9 * kIn * kOut});
  EXPECT_EQ(count(Counter::kDramReadConstants), 8 * kOut + w.size());
  // 6 rows of halo are read twice
  EXPECT_EQ(count(Counter::kDramReadInput), (16 + 6) * kSize * kIn + residual.size());
  EXPECT_EQ(count(Counter::kDramWrittenOutput), residual.size());
  EXPECT_EQ(count(Counter::kArrayPasses), uint64_t{kSize * kSize} * 9 * 2 * 3);
}

TEST_F(Layers, ProductOfTwoActivationsTransposed) {
  constexpr int64_t kRows = 20, kInner = 64, kColumns = 24, kShift = 34;
  const Configuration c = *findConfiguration("nv_small");
  const std::vector<int8_t> in = bytes((kRows + kColumns) * kInner);
  ProgramBuilder p(c);
  appendParams(p.binary.constants, std::vector<int32_t>(kColumns), kShift);
  p.binary.regions = {{"params", RegionClass::kConstants, p.binary.constants.size()},
                      {"in", RegionClass::kInput, in.size()},
                      {"out", RegionClass::kOutput, kRows * kColumns}};
  p.descriptor(0, DescriptorKind::kTransfer, {{"run", static_cast<int64_t>(in.size())}});
  p.descriptor(1, DescriptorKind::kTransfer, {{"run", 8 * kColumns}});
  p.op("load", {{"region", 1}, {"dst", 4096}, {"d", 0}});
  p.op("load", {{"d", 1}}, {}, {0, 1});
  p.descriptor(2, DescriptorKind::kWindow,
               {{"in_h", 1},
                {"in_w", kRows},
                {"out_w", kRows},
                {"cin", kInner},
                {"cout", kColumns},
                {"pixel_stride", kInner},
                {"weight_pitch", kInner},
                {"acc_pitch", kRows},
                {"transposed", 1},
                {"a_zp", 3},
                {"w_zp", -4}});
  p.op("conv", {{"acc", 0}, {"act", 4096}, {"wgt", 4096 + kRows * kInner}, {"d", 2}}, {0, 1},
       {1, 1});
  p.descriptor(3, DescriptorKind::kEpilogue,
               {{"out_w", kRows},
                {"in_w", kRows},
                {"channels", kColumns},
                {"acc_pitch", kRows},
                {"pixel_stride", kColumns},
                {"low", -128},
                {"high", 127}});
  p.op("requant", {{"dst", 512}, {"d", 3}}, {1, 1}, {2, 1});
  p.descriptor(1, DescriptorKind::kTransfer, {{"run", kRows * kColumns}});
  p.op("store", {{"region", 2}, {"src", 512}, {"d", 1}}, {2, 1});
  const Result8 result = run(c, p, in, kRows * kColumns);
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 0; j < kColumns; ++j) {
      int64_t sum = 0;
      for (int64_t k = 0; k < kInner; ++k)
        sum += (in[i * kInner + k] - 3) * (in[(kRows + j) * kInner + k] + 4);
      ASSERT_EQ(result.values[i * kColumns + j], clamped(roundedShift(sum * 0x800000, kShift)))
          << i << ", " << j;
    }
}

// A program is a race exactly when some pair of its accesses has no chain of signals between:
// compared with a search over all chains, on random programs of three engines.
TEST_F(Layers, RacesAreThosePairsThatNoSignalsOrder) {
  const Configuration c = *findConfiguration("gem16");
  // load0 writes, matrix and vector by their own instructions
  constexpr int kEngines[] = {1, 9, 11};
  int races = 0, clean = 0;
  for (int round = 0; round < 3000; ++round) {
    struct Step {
      int engine, address;
      int wait, signal;
    };
    std::vector<Step> steps;
    ProgramBuilder p(c);
    p.descriptor(0, DescriptorKind::kTransfer, {{"run", 8}});
    p.descriptor(1, DescriptorKind::kLanes, {{"run", 8}});
    p.descriptor(2, DescriptorKind::kTransfer, {{"run", 64}});
    p.op("fill", {{"d", 2}});
    p.fence();
    const uint32_t first = static_cast<uint32_t>(p.binary.code.size());
    std::array<int, 32> tokens{};
    for (int i = 0; i < 8; ++i) {
      Step step{static_cast<int>(random() % 2), static_cast<int>(random() % 4) * 8, -1, -1};
      // Semaphore 2 e + f goes from engine e to f, so that tokens have one source; a wait has a
      // signal before it.
      const int from = 1 - step.engine;
      if (random() % 2 && tokens[2 * from + step.engine] > 0) {
        step.wait = 2 * from + step.engine;
        --tokens[step.wait];
      }
      if (random() % 2) ++tokens[step.signal = 2 * step.engine + from];
      const Tokens wait{std::max(step.wait, 0), step.wait >= 0},
          signal{std::max(step.signal, 0), step.signal >= 0};
      if (step.engine == 0)
        p.op("fill", {{"dst", step.address}, {"d", 0}}, wait, signal, kEngines[0]);
      else
        p.op("vunary", {{"a", step.address}, {"dst", step.address}, {"d", 1}, {"fn", 1}}, wait,
             signal, kEngines[2]);
      steps.push_back(step);
    }
    p.op("halt", {});
    // before[i][j]: i is ordered before j.
    bool before[8][8] = {};
    std::array<std::vector<int>, 32> signals;
    for (int j = 0; j < 8; ++j) {
      for (int i = 0; i < j; ++i) before[i][j] |= steps[i].engine == steps[j].engine;
      if (steps[j].wait >= 0) {
        std::vector<int>& queue = signals[steps[j].wait];
        before[queue.front()][j] = true;
        queue.erase(queue.begin());
      }
      if (steps[j].signal >= 0) signals[steps[j].signal].push_back(j);
    }
    for (int k = 0; k < 8; ++k)
      for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 8; ++j) before[i][j] |= before[i][k] && before[k][j];
    bool expected = false;
    for (int j = 0; j < 8; ++j)
      for (int i = 0; i < j; ++i) expected |= steps[i].address == steps[j].address && !before[i][j];
    const auto device = makeFunctionalDevice(c);
    ASSERT_FALSE(device->load(p.binary));
    const Result<RunReport> report = device->run();
    ASSERT_TRUE(report);
    ASSERT_EQ(report->fault.has_value(), expected)
        << "round " << round << " seed " << kSeed << (report->fault ? report->fault->message : "");
    if (report->fault) {
      EXPECT_EQ(report->fault->kind, FaultKind::kRace) << report->fault->message;
      EXPECT_GE(report->fault->instruction, first);
    }
    ++(expected ? races : clean);
  }
  EXPECT_GT(races, 300);
  EXPECT_GT(clean, 100);
}

} // namespace
} // namespace candela::npu
