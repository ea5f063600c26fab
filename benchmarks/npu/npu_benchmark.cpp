// The functional model on the convolutions of ResNet-50 at 224 x 224, tile by tile: load, conv, requant, store. Random
// bytes; the argument is the kernels and whether races and initialisation are checked.
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
  int64_t pad() const { return kernel / 2; }
  int64_t out() const { return (in + 2 * pad() - kernel) / stride + 1; }
};

/// He et al. 2015, table 1, 50 layers; the stride lies in the 3 x 3 (as in ONNX's model zoo, version 1.5). The last one
/// is the fully connected layer.
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

/// The tiles of one layer: as many channels as leave half of the scratchpad, as many rows as fit the accumulators.
void addLayer(ProgramBuilder& p, const Configuration& c, const Layer& layer, int64_t& weightsAt) {
  const int64_t columns = c.columns(), out = layer.out(), k = layer.kernel * layer.kernel * layer.cin;
  const int64_t half = c.scratchpadBytes() / 2, paramsAt = 0, weights = 16384, rowBytes = layer.in * layer.cin;
  int64_t channels =
      std::clamp((half - weights) / k / columns * columns, columns, (layer.cout + columns - 1) / columns * columns);
  channels = std::min(channels, c.accumulatorRows() / out * columns);
  const int64_t acts = (weights + k * std::min(channels, layer.cout) + 63) / 64 * 64;
  for (int64_t n = 0; n < layer.cout; n += channels) {
    const int64_t count = std::min(channels, layer.cout - n), blocks = (count + columns - 1) / columns;
    p.descriptor(0, DescriptorKind::kTransfer,
                 {{"run", count}, {"len1", k}, {"far_stride1", layer.cout}, {"near_stride1", count}});
    p.op("load", {{"region", 1}, {"far", weightsAt + n}, {"dst", weights}, {"d", 0}});
    p.descriptor(0, DescriptorKind::kTransfer, {{"run", 8 * count}});
    p.op("load", {{"region", 0}, {"far", 0}, {"dst", paramsAt}, {"d", 0}});
    const int64_t room = (c.scratchpadBytes() - acts) / (rowBytes * layer.stride + out * count);
    const int64_t rows = std::clamp<int64_t>(
        std::min(c.accumulatorRows() / (blocks * out), room - layer.kernel / layer.stride - 1), 1, out);
    for (int64_t y = 0; y < out; y += rows) {
      const int64_t outH = std::min(rows, out - y), from = std::max<int64_t>(y * layer.stride - layer.pad(), 0);
      const int64_t to = std::min((y + outH - 1) * layer.stride - layer.pad() + layer.kernel, layer.in),
                    inH = to - from;
      const int64_t results = acts + inH * rowBytes,
                    taps = std::max<int64_t>(1, std::min<int64_t>(64, c.rows() / layer.cin));
      p.descriptor(
          0, DescriptorKind::kTransfer,
          {{"run", layer.cin * layer.in}, {"len1", inH}, {"far_stride1", rowBytes}, {"near_stride1", rowBytes}});
      if (layer.cin * layer.in > 65536) throw std::logic_error("a row is longer than a run");
      p.op("load", {{"region", 0}, {"far", from * rowBytes}, {"dst", acts}, {"d", 0}}, {}, {0, 1});
      p.descriptor(1, DescriptorKind::kWindow,
                   {{"in_h", inH},
                    {"in_w", layer.in},
                    {"out_h", outH},
                    {"out_w", out},
                    {"cin", layer.cin},
                    {"cout", count},
                    {"kernel_h", layer.kernel},
                    {"kernel_w", layer.kernel},
                    {"stride_h", layer.stride},
                    {"stride_w", layer.stride},
                    {"pad_top", from - y * layer.stride + layer.pad()},
                    {"pad_left", layer.pad()},
                    {"taps", taps},
                    {"row_stride", rowBytes},
                    {"pixel_stride", layer.cin},
                    {"weight_pitch", count},
                    {"acc_pitch", outH * out},
                    {"a_zp", -3}});
      p.op("conv", {{"acc", 0}, {"act", acts}, {"wgt", weights}, {"d", 1}}, {0, 1}, {1, 1});
      p.descriptor(2, DescriptorKind::kEpilogue,
                   {{"out_h", outH},
                    {"out_w", out},
                    {"channels", count},
                    {"in_h", outH},
                    {"in_w", out},
                    {"acc_pitch", outH * out},
                    {"row_stride", out * count},
                    {"pixel_stride", count},
                    {"params", paramsAt},
                    {"zp", -128},
                    {"low", -128},
                    {"high", 127}});
      p.op("requant", {{"acc", 0}, {"dst", results}, {"d", 2}}, {1, 1}, {2, 1});
      p.descriptor(3, DescriptorKind::kTransfer,
                   {{"run", count}, {"len1", outH * out}, {"near_stride1", count}, {"far_stride1", layer.cout}});
      p.op("store", {{"region", 2}, {"far", y * out * layer.cout + n}, {"src", results}, {"d", 3}}, {2, 1});
      p.fence();
    }
  }
  weightsAt += k * layer.cout;
}

void resnet50Convolutions(benchmark::State& state, const char* preset) {
  const Configuration c = *findConfiguration(preset);
  ProgramBuilder p(c);
  p.binary.regions = {{"in", RegionClass::kInput, 1 << 20},
                      {"weights", RegionClass::kConstants, 26 << 20},
                      {"out", RegionClass::kOutput, 1 << 20}};
  int64_t weightsAt = 0;
  for (const Layer& layer : resnet50()) addLayer(p, c, layer, weightsAt);
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
  if (const Outcome bad = device->load(std::move(p.binary))) return state.SkipWithError(bad->message.c_str());
  if (device->bind(0, in) || device->bind(2, out)) return state.SkipWithError("a region is not bound");
  Counters counters{};
  for (auto _ : state) {
    const Result<RunReport> run = device->run();
    if (!run || run->fault) return state.SkipWithError(run ? run->fault->message.c_str() : run.message().c_str());
    counters = run->counters;
  }
  const auto macs = static_cast<double>(counters[static_cast<int>(Counter::kMacs)]);
  state.counters["GMAC"] = macs / 1e9;
  state.counters["GMAC/s"] = benchmark::Counter(macs / 1e9, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["instructions"] = static_cast<double>(counters[static_cast<int>(Counter::kInstructions)]);
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

} // namespace
} // namespace candela::npu

BENCHMARK_MAIN();
