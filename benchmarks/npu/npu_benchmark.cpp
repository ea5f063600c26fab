// The functional model on the convolutions of ResNet-50 and MobileNetV2 at 224 x 224, tile by tile:
// load, conv or dwconv, requant, store. Random bytes; the argument is the kernels and whether races
// and initialisation are checked.
// Then single instructions: time for each value that they write.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <random>
#include <stdexcept>

#include "simulator/npu_device.h"
#include "tests/unit/simulator/program_builder.h"

namespace candela::npu {
namespace {

struct Layer {
  int64_t in, cin, cout, kernel, stride;
  bool depthwise = false, residual = false;
  int64_t pad() const { return kernel / 2; }
  int64_t out() const { return (in + 2 * pad() - kernel) / stride + 1; }
};

/// He et al. 2015, table 1, 50 layers; the stride lies in the 3 x 3 (as in ONNX's model zoo,
/// version 1.5). The last one is the fully connected layer.
std::vector<Layer> resnet50() {
  std::vector<Layer> layers{{224, 3, 64, 7, 2}};
  int64_t size = 56, channels = 64;
  const int64_t blocks[] = {3, 4, 6, 3};
  for (int stage = 0; stage < 4; ++stage) {
    const int64_t width = int64_t{64} << stage;
    for (int64_t block = 0; block < blocks[stage]; ++block) {
      const int64_t stride = block == 0 && stage > 0 ? 2 : 1;
      layers.push_back({size, channels, width, 1, 1});
      layers.push_back({size, width, width, 3, stride});
      layers.push_back({size / stride, width, 4 * width, 1, 1});
      if (block == 0) layers.push_back({size, channels, 4 * width, 1, stride});
      size /= stride;
      channels = 4 * width;
    }
  }
  layers.push_back({1, 2048, 1000, 1, 1});
  return layers;
}

/// Sandler et al. 2018, table 2.
std::vector<Layer> mobilenetV2() {
  std::vector<Layer> layers{{224, 3, 32, 3, 2}};
  int64_t size = 112, channels = 32;
  struct Stage {
    int64_t expansion, channels, blocks, stride;
  };
  for (const Stage& stage :
       {Stage{1, 16, 1, 1}, Stage{6, 24, 2, 2}, Stage{6, 32, 3, 2}, Stage{6, 64, 4, 2},
        Stage{6, 96, 3, 1}, Stage{6, 160, 3, 2}, Stage{6, 320, 1, 1}})
    for (int64_t block = 0; block < stage.blocks; ++block) {
      const int64_t stride = block == 0 ? stage.stride : 1, wide = stage.expansion * channels;
      if (stage.expansion > 1) layers.push_back({size, channels, wide, 1, 1});
      layers.push_back({size, wide, wide, 3, stride, true});
      size /= stride;
      layers.push_back({size, wide, stage.channels, 1, 1, false, block > 0});
      channels = stage.channels;
    }
  layers.push_back({7, 320, 1280, 1, 1});
  layers.push_back({1, 1280, 1000, 1, 1});
  return layers;
}

/// Where the tiles of a layer lie in the scratchpad, and how large they are.
struct Tiling {
  int64_t kernelValues; ///< of one output channel
  int64_t channels;     ///< of a tile, but the last one
  int64_t activations;  ///< address

  static constexpr int64_t kParams = 0, kWeights = 16384; ///< addresses
};

/// As many channels as leave half of the scratchpad.
Tiling tilingOf(const Configuration& c, const Layer& layer) {
  const int64_t columns = c.columns();
  const int64_t k = layer.kernel * layer.kernel * (layer.depthwise ? 1 : layer.cin);
  const int64_t half = c.scratchpadBytes() / 2;
  int64_t channels = std::clamp((half - Tiling::kWeights) / k / columns * columns, columns,
                                (layer.cout + columns - 1) / columns * columns);
  channels = std::min(channels, c.accumulatorRows() / layer.out() * columns);
  if (layer.depthwise && channels < layer.cout)
    throw std::logic_error("a depthwise layer has all its channels in a tile");
  return {k, channels, (Tiling::kWeights + k * std::min(channels, layer.cout) + 63) / 64 * 64};
}

/// Output rows y .. y + outH - 1 of channels n .. n + count - 1.
struct Tile {
  int64_t n, count, y, outH;
  int64_t from, inH;         ///< the input rows
  int64_t results, residual; ///< addresses
};

Tile tileOf(const Layer& layer, const Tiling& tiling, int64_t n, int64_t count, int64_t y,
            int64_t rows) {
  const int64_t outH = std::min(rows, layer.out() - y);
  const int64_t from = std::max<int64_t>(y * layer.stride - layer.pad(), 0);
  const int64_t to = std::min((y + outH - 1) * layer.stride - layer.pad() + layer.kernel, layer.in);
  const int64_t inH = to - from;
  const int64_t results = tiling.activations + inH * layer.in * layer.cin;
  return {n, count, y, outH, from, inH, results, results + outH * layer.out() * count};
}

void addWeights(ProgramBuilder& p, const Layer& layer, const Tiling& tiling, int64_t from,
                int64_t count) {
  p.descriptor(0, DescriptorKind::kTransfer,
               {{"run", count},
                {"len1", tiling.kernelValues},
                {"far_stride1", layer.cout},
                {"near_stride1", count}});
  p.op("load", {{"region", 1}, {"far", from}, {"dst", Tiling::kWeights}, {"d", 0}});
  p.descriptor(0, DescriptorKind::kTransfer, {{"run", 8 * count}});
  p.op("load", {{"region", 0}, {"far", 0}, {"dst", Tiling::kParams}, {"d", 0}});
}

/// The activations, and what is added to the results.
void addLoads(ProgramBuilder& p, const Layer& layer, const Tiling& tiling, const Tile& tile) {
  const int64_t rowBytes = layer.in * layer.cin, out = layer.out();
  p.descriptor(0, DescriptorKind::kTransfer,
               {{"run", layer.cin * layer.in},
                {"len1", tile.inH},
                {"far_stride1", rowBytes},
                {"near_stride1", rowBytes}});
  if (layer.cin * layer.in > 65536) throw std::logic_error("a row is longer than a run");
  p.op("load",
       {{"region", 0}, {"far", tile.from * rowBytes}, {"dst", tiling.activations}, {"d", 0}}, {},
       {0, 1});
  if (!layer.residual) return;
  p.descriptor(4, DescriptorKind::kTransfer,
               {{"run", tile.count},
                {"len1", tile.outH * out},
                {"near_stride1", tile.count},
                {"far_stride1", layer.cout}});
  p.op("load",
       {{"region", 0},
        {"far", tile.y * out * layer.cout + tile.n},
        {"dst", tile.residual},
        {"d", 4}},
       {}, {3, 1});
  p.op("nop", {}, {3, 1}, {}, static_cast<int>(Engine::kRequant));
}

void addProducts(ProgramBuilder& p, const Configuration& c, const Layer& layer,
                 const Tiling& tiling, const Tile& tile) {
  int64_t taps = 1;
  if (!layer.depthwise) taps = std::max<int64_t>(1, std::min<int64_t>(64, c.rows() / layer.cin));
  p.descriptor(1, DescriptorKind::kWindow,
               {{"in_h", tile.inH},
                {"in_w", layer.in},
                {"out_h", tile.outH},
                {"out_w", layer.out()},
                {"cin", layer.cin},
                {"cout", tile.count},
                {"kernel_h", layer.kernel},
                {"kernel_w", layer.kernel},
                {"stride_h", layer.stride},
                {"stride_w", layer.stride},
                {"pad_top", tile.from - tile.y * layer.stride + layer.pad()},
                {"pad_left", layer.pad()},
                {"taps", taps},
                {"row_stride", layer.in * layer.cin},
                {"pixel_stride", layer.cin},
                {"weight_pitch", tile.count},
                {"acc_pitch", tile.outH * layer.out()},
                {"a_zp", -3}});
  p.op(layer.depthwise ? "dwconv" : "conv",
       {{"acc", 0}, {"act", tiling.activations}, {"wgt", Tiling::kWeights}, {"d", 1}}, {0, 1},
       {1, 1});
}

/// Requantizes the sums and stores them.
void addResults(ProgramBuilder& p, const Layer& layer, const Tile& tile) {
  const int64_t out = layer.out();
  p.descriptor(2, DescriptorKind::kEpilogue,
               {{"out_h", tile.outH},
                {"out_w", out},
                {"channels", tile.count},
                {"in_h", tile.outH},
                {"in_w", out},
                {"acc_pitch", tile.outH * out},
                {"row_stride", out * tile.count},
                {"pixel_stride", tile.count},
                {"params", Tiling::kParams},
                {"zp", -128},
                {"low", -128},
                {"high", 127}});
  if (layer.residual)
    p.descriptor(5, DescriptorKind::kRescale,
                 {{"a_mult", 0xa00000},
                  {"b_mult", 0xc00000},
                  {"shift", 24},
                  {"low", -128},
                  {"high", 127},
                  {"row_stride", out * tile.count},
                  {"pixel_stride", tile.count}});
  p.op("requant",
       {{"acc", 0},
        {"dst", tile.results},
        {"res", tile.residual},
        {"d", 2},
        {"r", 5},
        {"residual", layer.residual}},
       {1, 1}, {2, 1});
  p.descriptor(3, DescriptorKind::kTransfer,
               {{"run", tile.count},
                {"len1", tile.outH * out},
                {"near_stride1", tile.count},
                {"far_stride1", layer.cout}});
  p.op(
      "store",
      {{"region", 2}, {"far", tile.y * out * layer.cout + tile.n}, {"src", tile.results}, {"d", 3}},
      {2, 1});
  p.fence();
}

/// The tiles of one layer, each of as many rows as fit the accumulators.
void addLayer(ProgramBuilder& p, const Configuration& c, const Layer& layer, int64_t& weightsAt) {
  const Tiling tiling = tilingOf(c, layer);
  const int64_t out = layer.out(), rowBytes = layer.in * layer.cin;
  for (int64_t n = 0; n < layer.cout; n += tiling.channels) {
    const int64_t count = std::min(tiling.channels, layer.cout - n);
    const int64_t blocks = (count + c.columns() - 1) / c.columns();
    addWeights(p, layer, tiling, weightsAt + n, count);
    const int64_t room = (c.scratchpadBytes() - tiling.activations) /
                         (rowBytes * layer.stride + (1 + layer.residual) * out * count);
    const int64_t rows = std::clamp<int64_t>(
        std::min(c.accumulatorRows() / (blocks * out), room - layer.kernel / layer.stride - 1), 1,
        out);
    for (int64_t y = 0; y < out; y += rows) {
      const Tile tile = tileOf(layer, tiling, n, count, y, rows);
      addLoads(p, layer, tiling, tile);
      addProducts(p, c, layer, tiling, tile);
      addResults(p, layer, tile);
    }
  }
  weightsAt += tiling.kernelValues * layer.cout;
}

void convolutions(benchmark::State& state, const std::vector<Layer>& layers, const char* preset) {
  const Configuration c = *findConfiguration(preset);
  ProgramBuilder p(c);
  p.binary.regions = {{"in", RegionClass::kInput, 2 << 20},
                      {"weights", RegionClass::kConstants, 26 << 20},
                      {"out", RegionClass::kOutput, 2 << 20}};
  int64_t weightsAt = 0;
  for (const Layer& layer : layers) addLayer(p, c, layer, weightsAt);
  p.op("halt", {});
  std::mt19937 random(1);
  std::vector<std::byte> in(p.binary.regions[0].bytes), out(p.binary.regions[2].bytes);
  for (std::byte& byte : in) byte = static_cast<std::byte>(random());
  p.binary.constants.resize(p.binary.regions[1].bytes);
  for (std::byte& byte : p.binary.constants) byte = static_cast<std::byte>(random());
  FunctionalOptions options;
  options.plainKernels = state.range(0) == 0;
  options.checks = state.range(1) != 0;
  const auto device = makeFunctionalDevice(c, options);
  if (const Outcome bad = device->load(std::move(p.binary)))
    return state.SkipWithError(bad->message.c_str());
  if (device->bind(0, in) || device->bind(2, out))
    return state.SkipWithError("a region is not bound");
  Counters counters{};
  for (auto _ : state) {
    const Result<RunReport> run = device->run();
    if (!run || run->fault)
      return state.SkipWithError(run ? run->fault->message.c_str() : run.message().c_str());
    counters = run->counters;
  }
  const auto macs = static_cast<double>(counters[static_cast<int>(Counter::kMacs)]);
  state.counters["GMAC"] = macs / 1e9;
  state.counters["GMAC/s"] =
      benchmark::Counter(macs / 1e9, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["instructions"] =
      static_cast<double>(counters[static_cast<int>(Counter::kInstructions)]);
}

void resnet50Convolutions(benchmark::State& state, const char* preset) {
  convolutions(state, resnet50(), preset);
}
void mobilenetV2Convolutions(benchmark::State& state, const char* preset) {
  convolutions(state, mobilenetV2(), preset);
}

/// One instruction on edge8t, 512 times in a loop, all checks on. The scratchpad holds random
/// bytes, accumulators too.
struct Single {
  const char* name;
  const char* op;
  Fields fields;
  DescriptorKind kind;
  Fields descriptor, rescale;
  int64_t values; ///< that it writes
};

constexpr int64_t kI8 = 0, kI32 = 2, kI16 = 3, kA = 0, kB = 1 << 20, kDst = 1 << 21;
constexpr int64_t kRuns = 784, kChannels = 64, kValues = kRuns * kChannels; // 28 x 28 x 64

int64_t bytesOf(int64_t type) {
  if (type == kI32) return 4;
  return type == kI16 ? 2 : 1;
}

Fields lanes(int64_t a, int64_t out) {
  return {{"run", kChannels},
          {"len1", kRuns},
          {"a_stride1", kChannels * bytesOf(a)},
          {"b_stride1", kChannels * bytesOf(a)},
          {"out_stride1", kChannels * bytesOf(out)},
          {"a_type", a},
          {"b_type", a},
          {"out_type", out}};
}

Fields scale(int64_t bits) {
  const int64_t high = (int64_t{1} << (bits - 1)) - 1;
  return {{"a_mult", 0xa00000},
          {"b_mult", 0xc00000},
          {"shift", 25},
          {"low", -high - 1},
          {"high", high}};
}

Fields tensor(int64_t type, int64_t unit) {
  return {{"in_h", 28},
          {"in_w", 28},
          {"out_h", 28},
          {"out_w", 28},
          {"channels", kChannels},
          {"kernel_h", 3},
          {"kernel_w", 3},
          {"pad_top", 1},
          {"pad_left", 1},
          {"in_row_stride", 28 * kChannels * unit},
          {"in_pixel_stride", kChannels * unit},
          {"out_row_stride", 28 * kChannels * unit},
          {"out_pixel_stride", kChannels * unit},
          {"a_type", type},
          {"out_type", type}};
}

Fields window(int64_t type, int64_t unit) {
  return {{"in_h", 28},
          {"in_w", 28},
          {"out_h", 28},
          {"out_w", 28},
          {"cin", kChannels},
          {"cout", kChannels},
          {"kernel_h", 3},
          {"kernel_w", 3},
          {"pad_top", 1},
          {"pad_left", 1},
          {"row_stride", 28 * kChannels * unit},
          {"pixel_stride", kChannels * unit},
          {"weight_pitch", kChannels},
          {"a_type", type}};
}

Fields epilogue(int64_t type, int64_t unit) {
  const int64_t high = unit == 1 ? 127 : 32767;
  return {{"in_h", 28},
          {"in_w", 28},
          {"out_h", 28},
          {"out_w", 28},
          {"channels", kChannels},
          {"row_stride", 28 * kChannels * unit},
          {"pixel_stride", kChannels * unit},
          {"out_type", type},
          {"low", -high - 1},
          {"high", high},
          {"wide", unit - 1},
          {"params", 3 << 20}};
}

Fields residual(int64_t bits) {
  Fields r = scale(bits);
  const int64_t type = bits == 8 ? kI8 : kI16, unit = bits / 8;
  r.insert(r.end(), {{"row_stride", 28 * kChannels * unit},
                     {"pixel_stride", kChannels * unit},
                     {"b_type", type},
                     {"out_type", type}});
  return r;
}

Fields with(Fields fields, std::string_view name, int64_t value) {
  fields.push_back({name, value});
  return fields;
}

const std::vector<Single>& singles() {
  const Fields three{{"a", kA}, {"b", kB}, {"dst", kDst}, {"d", 0}};
  const Fields requant{{"dst", kDst}, {"res", kB}, {"d", 0}, {"r", 1}},
      conv{{"act", kA}, {"wgt", kB}, {"d", 0}}, two{{"a", kA}, {"dst", kDst}, {"d", 0}};
  const auto k = DescriptorKind::kLanes, pools = DescriptorKind::kPooling,
             w = DescriptorKind::kWindow;
  const auto q = DescriptorKind::kEpilogue, t = DescriptorKind::kTransfer;
  static const std::vector<Single> all{
      {"add_i8", "vbinary", with(three, "fn", 0), k, lanes(kI8, kI8), {}, kValues},
      {"add_i16", "vbinary", with(three, "fn", 0), k, lanes(kI16, kI16), {}, kValues},
      {"scaled_add_i8", "vbinary", with(three, "fn", 8), k, lanes(kI8, kI8), scale(8), kValues},
      {"scaled_mul_i8", "vbinary", with(three, "fn", 9), k, lanes(kI8, kI8), scale(8), kValues},
      {"rescale_i32_i8", "vunary", with(three, "fn", 3), k, lanes(kI32, kI8), scale(8), kValues},
      {"table_i8", "vunary", with(three, "fn", 4), k, lanes(kI8, kI8), {}, kValues},
      {"table_i16", "vunary", with(three, "fn", 4), k, lanes(kI16, kI16), {}, kValues},
      {"reduce_max_i8",
       "vreduce",
       with(two, "fn", 2),
       k,
       with(lanes(kI8, kI8), "b_scalar", 0),
       {},
       kValues},
      {"pool_max_i8", "vpool", with(two, "fn", 0), pools, tensor(kI8, 1), {}, kValues},
      {"pool_sum_i8", "vpool", with(two, "fn", 1), pools, tensor(kI8, 1), scale(8), kValues},
      {"requant_i8", "requant", requant, q, epilogue(kI8, 1), residual(8), kValues},
      {"requant_residual_i8", "requant", with(requant, "residual", 1), q, epilogue(kI8, 1),
       residual(8), kValues},
      {"requant_residual_i16", "requant", with(requant, "residual", 1), q, epilogue(kI16, 2),
       residual(16), kValues},
      {"dwconv3x3_i8", "dwconv", conv, w, window(kI8, 1), {}, kValues},
      {"dwconv3x3_i16", "dwconv", conv, w, window(kI16, 2), {}, kValues},
      {"conv3x3_i8", "conv", conv, w, window(kI8, 1), {}, kValues},
      {"conv3x3_i16", "conv", conv, w, window(kI16, 2), {}, kValues},
      {"transpose_i8",
       "copy",
       {{"src", kA}, {"dst", kDst}, {"d", 0}},
       t,
       {{"run", 1},
        {"len1", kChannels},
        {"len2", kRuns},
        {"far_stride1", kRuns},
        {"far_stride2", 1},
        {"near_stride1", 1},
        {"near_stride2", kChannels}},
       {},
       kValues},
      {"load_pixels_i8",
       "load",
       {{"dst", kDst}, {"d", 0}},
       t,
       {{"run", kChannels},
        {"len1", kRuns},
        {"far_stride1", 2 * kChannels},
        {"near_stride1", kChannels}},
       {},
       kValues},
  };
  return all;
}

void instruction(benchmark::State& state, const Single& single) {
  const Configuration c = *findConfiguration("edge8t");
  ProgramBuilder p(c);
  constexpr int64_t kTimes = 512, kBytes = 4 << 20;
  p.binary.regions = {{"in", RegionClass::kInput, kBytes}};
  p.descriptor(0, DescriptorKind::kTransfer,
               {{"run", 65536}, {"len1", 64}, {"far_stride1", 65536}, {"near_stride1", 65536}});
  p.op("load", {{"d", 0}});
  p.fence();
  p.descriptor(0, DescriptorKind::kEpilogue,
               {{"out_w", 784}, {"channels", c.columns()}, {"pixel_stride", 4 * c.columns()}});
  p.op("accload", {{"d", 0}});
  p.fence();
  p.descriptor(0, single.kind, single.descriptor);
  p.descriptor(1, DescriptorKind::kRescale, single.rescale);
  p.op("loop", {{"count", kTimes}, {"length", 1}});
  p.op(single.op, single.fields);
  p.op("halt", {});
  std::mt19937 random(1);
  std::vector<std::byte> in(kBytes);
  for (std::byte& byte : in) byte = static_cast<std::byte>(random());
  const auto device = makeFunctionalDevice(c);
  if (const Outcome bad = device->load(std::move(p.binary)))
    return state.SkipWithError(bad->message.c_str());
  if (device->bind(0, in)) return state.SkipWithError("a region is not bound");
  for (auto _ : state) {
    const Result<RunReport> run = device->run();
    if (!run || run->fault)
      return state.SkipWithError(run ? run->fault->message.c_str() : run.message().c_str());
  }
  state.counters["ns/value"] = benchmark::Counter(static_cast<double>(kTimes * single.values) / 1e9,
                                                  benchmark::Counter::kIsIterationInvariantRate |
                                                      benchmark::Counter::kInvert);
  state.counters["instructions"] = static_cast<double>(kTimes);
}
BENCHMARK_CAPTURE(resnet50Convolutions, gem16, "gem16")
    ->ArgNames({"avx2", "checks"})
    ->Args({1, 1})
    ->Args({1, 0})
    ->Args({0, 1})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(resnet50Convolutions, edge4t, "edge4t")
    ->ArgNames({"avx2", "checks"})
    ->Args({1, 1})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(mobilenetV2Convolutions, gem16, "gem16")
    ->ArgNames({"avx2", "checks"})
    ->Args({1, 1})
    ->Args({1, 0})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(mobilenetV2Convolutions, edge4t, "edge4t")
    ->ArgNames({"avx2", "checks"})
    ->Args({1, 1})
    ->Unit(benchmark::kMillisecond);

} // namespace

void registerInstructions() {
  for (const Single& single : singles())
    benchmark::RegisterBenchmark((std::string("instruction/") + single.name).c_str(),
                                 [&single](benchmark::State& state) { instruction(state, single); })
        ->Unit(benchmark::kMillisecond);
}

} // namespace candela::npu

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  candela::npu::registerInstructions();
  benchmark::RunSpecifiedBenchmarks();
}
