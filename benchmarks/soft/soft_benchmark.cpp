// Speed of soft on the shapes that MobileNetV2 becomes when it is lowered to primitives, and on the
// whole of it.
#include <benchmark/benchmark.h>

#include <deque>

#include "tests/unit/runtime/host_executor/image_maker.h"
#include "tests/unit/runtime/host_executor/run_image.h"

namespace candela::runtime::host_executor {
namespace {

using Maker = testing::ImageMaker;

// A program under construction with its memory, all of it f32 filled with small numbers.
struct Program {
  Maker maker;
  std::deque<std::vector<float>> memory;
  std::vector<void*> buffers{nullptr};
  double flops = 0;

  uint32_t floats(int64_t count) {
    memory.emplace_back(static_cast<size_t>(count));
    for (size_t i = 0; i < memory.back().size(); ++i)
      memory.back()[i] = static_cast<float>(i % 17) * 0.01f - 0.05f;
    buffers.push_back(memory.back().data());
    return maker.buffer(static_cast<uint64_t>(count) * 4);
  }
  void matmul(uint32_t x, uint32_t y, int64_t outputs, int64_t inputs, int64_t columns) {
    const uint32_t w = floats(outputs * inputs);
    maker.instr(CDL_KIND_MATMUL, 0,
                {Maker::dense(w, CDL_F32, {1, outputs, inputs}),
                 Maker::dense(x, CDL_F32, {1, inputs, columns})},
                Maker::dense(y, CDL_F32, {1, outputs, columns}));
    flops += 2.0 * static_cast<double>(outputs * inputs * columns);
  }
  // y = fn(y, one value per channel), in place.
  void perChannel(int fn, uint32_t y, int64_t channels, int64_t columns) {
    const uint32_t bias = floats(channels);
    const cdl_view_t view = Maker::dense(y, CDL_F32, {channels, columns});
    maker.instr(CDL_KIND_BINARY, fn,
                {view, Maker::view(bias, CDL_F32, {channels, columns}, {1, 0})}, view);
  }
  void clip(uint32_t y, int64_t count) {
    const uint32_t limits = floats(2);
    const cdl_view_t view = Maker::dense(y, CDL_F32, {count});
    maker.instr(CDL_KIND_BINARY, CDL_BINARY_MAX, {view, Maker::view(limits, CDL_F32, {count}, {0})},
                view);
    maker.instr(CDL_KIND_BINARY, CDL_BINARY_MIN,
                {view, Maker::view(limits, CDL_F32, {count}, {0}, 1)}, view);
  }
  uint32_t pointwise(uint32_t x, int64_t outputs, int64_t inputs, int64_t columns, bool relu6) {
    const uint32_t y = floats(outputs * columns);
    matmul(x, y, outputs, inputs, columns);
    perChannel(CDL_BINARY_ADD, y, outputs, columns);
    if (relu6) clip(y, outputs * columns);
    return y;
  }
  // The input with a border of one, into its 3 x 3 windows: [channels, 9, out * out].
  uint32_t windows(uint32_t x, int64_t channels, int64_t size, int64_t stride) {
    const int64_t padded = size + 2, out = size / stride;
    const uint32_t border = floats(channels * padded * padded),
                   columns = floats(channels * 9 * out * out);
    maker.instr(CDL_KIND_COPY, 0, {Maker::dense(x, CDL_F32, {channels, size, size})},
                Maker::view(border, CDL_F32, {channels, size, size}, {padded * padded, padded, 1},
                            padded + 1));
    maker.instr(CDL_KIND_COPY, 0,
                {Maker::view(border, CDL_F32, {channels, 3, 3, out, out},
                             {padded * padded, padded, 1, padded * stride, stride})},
                Maker::dense(columns, CDL_F32, {channels, 3, 3, out, out}));
    return columns;
  }
  uint32_t depthwise(uint32_t x, int64_t channels, int64_t size, int64_t stride) {
    const int64_t out = size / stride, count = out * out;
    const uint32_t columns = windows(x, channels, size, stride), w = floats(channels * 9),
                   y = floats(channels * count);
    const cdl_view_t view = Maker::dense(columns, CDL_F32, {channels, 9, count});
    maker.instr(CDL_KIND_BINARY, CDL_BINARY_MUL,
                {view, Maker::view(w, CDL_F32, {channels, 9, count}, {9, 1, 0})}, view);
    maker.instr(CDL_KIND_REDUCE, CDL_REDUCE_SUM, {view},
                Maker::dense(y, CDL_F32, {channels, count}));
    perChannel(CDL_BINARY_ADD, y, channels, count);
    clip(y, channels * count);
    flops += 18.0 * static_cast<double>(channels * count);
    return y;
  }
  void run(benchmark::State& state) {
    const cdl_image_t* image = maker.finish();
    for (auto _ : state) {
      char text[200] = "";
      cdl_error_t error{text, sizeof text, 0};
      if (testing::runImage(image, buffers.data(), &error) != CDL_OK) state.SkipWithError(text);
    }
    state.counters["FLOP/s"] = benchmark::Counter(
        flops, benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000);
  }
};

void mobileNetV2(benchmark::State& state) {
  Program p;
  const uint32_t image = p.floats(3 * 224 * 224), columns = p.windows(image, 3, 224, 2);
  uint32_t x = p.pointwise(columns, 32, 27, 112 * 112, true);
  int64_t channels = 32, size = 112;
  const int64_t blocks[][4] = {{1, 16, 1, 1},
                               {6, 24, 2, 2},
                               {6, 32, 3, 2},
                               {6, 64, 4, 2},
                               // expansion, channels, repeats, stride
                               {6, 96, 3, 1},
                               {6, 160, 3, 2},
                               {6, 320, 1, 1}};
  for (const auto& [expansion, outputs, repeats, firstStride] : blocks)
    for (int64_t i = 0; i < repeats; ++i) {
      const int64_t stride = i == 0 ? firstStride : 1, wide = channels * expansion;
      const uint32_t entry = x;
      if (expansion > 1) x = p.pointwise(x, wide, channels, size * size, true);
      x = p.depthwise(x, wide, size, stride);
      size /= stride;
      x = p.pointwise(x, outputs, wide, size * size, false);
      if (stride == 1 && channels == outputs) {
        const cdl_view_t view = Maker::dense(x, CDL_F32, {outputs * size * size});
        p.maker.instr(CDL_KIND_BINARY, CDL_BINARY_ADD,
                      {view, Maker::dense(entry, CDL_F32, {outputs * size * size})}, view);
      }
      channels = outputs;
    }
  x = p.pointwise(x, 1280, 320, 49, true);
  const uint32_t pooled = p.floats(1280), logits = p.floats(1000);
  p.maker.instr(CDL_KIND_REDUCE, CDL_REDUCE_SUM, {Maker::dense(x, CDL_F32, {1280, 49, 1})},
                Maker::dense(pooled, CDL_F32, {1280, 1}));
  p.matmul(pooled, logits, 1000, 1280, 1);
  p.run(state);
}
BENCHMARK(mobileNetV2)->Unit(benchmark::kMillisecond);

void matmulF32(benchmark::State& state) {
  Program p;
  const uint32_t x = p.floats(state.range(1) * state.range(2)),
                 y = p.floats(state.range(0) * state.range(2));
  p.matmul(x, y, state.range(0), state.range(1), state.range(2));
  p.run(state);
}
BENCHMARK(matmulF32)
    ->Args({96, 16, 12544})
    ->Args({24, 144, 3136})
    ->Args({384, 64, 196})
    ->Args({1280, 320, 49})
    ->Args({1000, 1280, 1})
    ->Args({1, 1280, 1000})
    ->Args({512, 512, 512});

void matmulNarrow(benchmark::State& state, int a, int b, int y) {
  constexpr int64_t n = 256;
  Program p; // the memory of f32 is large enough for every type but the 64-bit results
  const uint32_t left = p.floats(n * n), right = p.floats(n * n), result = p.floats(2 * n * n);
  p.maker.instr(CDL_KIND_MATMUL, 0,
                {Maker::dense(left, a, {1, n, n}), Maker::dense(right, b, {1, n, n})},
                Maker::dense(result, y, {1, n, n}));
  p.flops = 2.0 * n * n * n;
  p.run(state);
}
BENCHMARK_CAPTURE(matmulNarrow, f16, CDL_F16, CDL_F16, CDL_F16);
BENCHMARK_CAPTURE(matmulNarrow, i8, CDL_I8, CDL_I8, CDL_I32);
BENCHMARK_CAPTURE(matmulNarrow, i16_i8, CDL_I16, CDL_I8, CDL_I64);
BENCHMARK_CAPTURE(matmulNarrow, i32, CDL_I32, CDL_I32, CDL_I32);

void depthwise(benchmark::State& state) {
  Program p;
  p.depthwise(p.floats(96 * 112 * 112), 96, 112, 2);
  p.run(state);
}
BENCHMARK(depthwise)->Unit(benchmark::kMillisecond);

} // namespace
} // namespace candela::runtime::host_executor

BENCHMARK_MAIN();
