// Speed of the CPU backend's instructions on shapes of ResNet-50, MobileNetV2 and BERT, one thread.
// What is timed is what the backend itself times: instructions, without the way of inputs and
// outputs.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/compiler/driver/pipeline.h"

namespace candela {
namespace {

template <typename T> T orDie(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "%s\n", result.status().message().c_str());
    std::exit(1);
  }
  return std::move(result).value();
}

std::shared_ptr<runtime::plugin::Device> cpu() {
  static const auto device = orDie(orDie(runtime::plugin::findPlugin(PLUGIN_cpu))->open(0, {}));
  return device;
}

std::string number(int64_t value) { return std::to_string(value); }

/// Times the graph of this text; macs: multiply-accumulates of one run, 0 when it has none.
void time(benchmark::State& state, const std::string& text, double macs) {
  Diagnostics diagnostics;
  auto ir = orDie(driver::parseIr(text, "benchmark", diagnostics));
  const std::shared_ptr<runtime::plugin::Device> devices[] = {cpu()};
  const auto session =
      orDie(driver::compile(std::get<graph::Graph>(std::move(ir)), "benchmark", devices));
  std::vector<Tensor> inputs;
  const runtime::bundle::Bundle& bundle = session->bundle();
  for (const uint32_t input : bundle.inputs)
    inputs.push_back(orDie(randomTensor(bundle.values[input].elem, bundle.values[input].dims, 1)));
  uint64_t bytes = 0;
  for (auto _ : state) {
    runtime::session::Trace trace(true);
    orDie(session->run(inputs));
    uint64_t ns = 0;
    for (const runtime::session::TraceEvent& event : trace.events())
      if (event.instr) ns += event.endNs - event.startNs;
    state.SetIterationTime(static_cast<double>(ns) * 1e-9);
  }
  for (const uint32_t value : bundle.inputs) bytes += bundle.values[value].sizeBytes();
  for (const uint32_t value : bundle.outputs) bytes += bundle.values[value].sizeBytes();
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * bytes));
  if (macs > 0)
    state.counters["GFLOP/s"] = benchmark::Counter(
        2e-9 * macs * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

/// {channels, filters, size, kernel, stride}; padding keeps the size but for the stride.
void convolution(benchmark::State& state, bool isInteger, bool isDepthwise) {
  const int64_t channels = state.range(0), filters = state.range(1);
  const int64_t size = state.range(2), kernel = state.range(3), stride = state.range(4);
  const int64_t out = (size - 1) / stride + 1, pad = kernel / 2;
  const int64_t perFilter = isDepthwise ? 1 : channels;
  const std::string dims = "[1," + number(channels) + "," + number(size) + "," + number(size) + "]";
  const std::string results = "[1," + number(filters) + "," + number(out) + "," + number(out) + "]";
  const std::string weights = "[" + number(filters) + "," + number(perFilter) + "," +
                              number(kernel) + "," + number(kernel) + "]";
  const std::string attrs = " {pads = [" + number(pad) + "," + number(pad) + "," + number(pad) +
                            "," + number(pad) + "], strides = [" + number(stride) + "," +
                            number(stride) + "], group = " + number(isDepthwise ? channels : 1) +
                            "}\n}\n";
  const std::string text = isInteger ? "graph @g(%x: u8" + dims + ") -> (%y: i32" + results +
                                           ") {\n  %w = constant random(2) : i8" + weights +
                                           "\n  %y = conv_integer %x, %w" + attrs
                                     : "graph @g(%x: f32" + dims + ") -> (%y: f32" + results +
                                           ") {\n  %w = constant random(2) : f32" + weights +
                                           "\n  %y = conv %x, %w" + attrs;
  time(state, text, static_cast<double>(filters * out * out * perFilter * kernel * kernel));
}

/// {rows, terms, columns}
void product(benchmark::State& state, bool isInteger) {
  const std::string m = number(state.range(0)), k = number(state.range(1)),
                    n = number(state.range(2));
  const std::string in = isInteger ? "i8" : "f32";
  const std::string out = isInteger ? "i32" : "f32";
  time(state,
       "graph @g(%x: " + in + "[" + m + "," + k + "]) -> (%y: " + out + "[" + m + "," + n +
           "]) {\n  %w = constant random(2) : " + in + "[" + k + "," + n +
           "]\n  %y = " + (isInteger ? "matmul_integer" : "matmul") + " %x, %w\n}\n",
       static_cast<double>(state.range(0) * state.range(1) * state.range(2)));
}

/// {rows, columns}: one op over all elements.
void elements(benchmark::State& state, const std::string& body) {
  const std::string dims = "[" + number(state.range(0)) + "," + number(state.range(1)) + "]";
  time(state,
       "graph @g(%x: f32" + dims + ", %z: f32" + dims + ") -> (%y: f32" + dims + ") {\n" + body +
           "\n}\n",
       0);
}

const std::vector<std::vector<int64_t>> kConvolutions = {
    {3, 64, 224, 7, 2},   {64, 64, 56, 3, 1},  {64, 256, 56, 1, 1},    {128, 128, 28, 3, 1},
    {256, 256, 14, 3, 1}, {512, 512, 7, 3, 1}, {1024, 2048, 14, 1, 2}, {16, 96, 112, 1, 1},
    {144, 24, 56, 1, 1},  {384, 64, 14, 1, 1}, {320, 1280, 7, 1, 1}};
const std::vector<std::vector<int64_t>> kDepthwise = {{32, 32, 112, 3, 1},
                                                      {96, 96, 112, 3, 2},
                                                      {144, 144, 56, 3, 1},
                                                      {384, 384, 14, 3, 1},
                                                      {960, 960, 7, 3, 1}};
const std::vector<std::vector<int64_t>> kProducts = {
    {128, 768, 768}, {128, 768, 3072}, {128, 3072, 768}, {1, 1280, 1000}};

void everyCase(benchmark::internal::Benchmark* made,
               const std::vector<std::vector<int64_t>>& cases) {
  for (const std::vector<int64_t>& one : cases) made->Args(one);
  made->UseManualTime()->Unit(benchmark::kMicrosecond);
}
void convolutionCases(benchmark::internal::Benchmark* made) { everyCase(made, kConvolutions); }
void depthwiseCases(benchmark::internal::Benchmark* made) { everyCase(made, kDepthwise); }
void productCases(benchmark::internal::Benchmark* made) { everyCase(made, kProducts); }
void elementCases(benchmark::internal::Benchmark* made) {
  everyCase(made, {{128, 768}, {128, 3072}});
}

BENCHMARK_CAPTURE(convolution, f32, false, false)->Apply(convolutionCases);
BENCHMARK_CAPTURE(convolution, int8, true, false)->Apply(convolutionCases);
BENCHMARK_CAPTURE(convolution, f32_depthwise, false, true)->Apply(depthwiseCases);
BENCHMARK_CAPTURE(convolution, int8_depthwise, true, true)->Apply(depthwiseCases);
BENCHMARK_CAPTURE(product, f32, false)->Apply(productCases);
BENCHMARK_CAPTURE(product, int8, true)->Apply(productCases);
BENCHMARK_CAPTURE(elements, add, "  %y = add %x, %z")->Apply(elementCases);
BENCHMARK_CAPTURE(elements, add_relu, "  %s = add %x, %z\n  %y = relu %s")->Apply(elementCases);
BENCHMARK_CAPTURE(elements, erf, "  %s = add %x, %z\n  %y = erf %s")->Apply(elementCases);
BENCHMARK_CAPTURE(elements, sigmoid_mul, "  %s = sigmoid %x\n  %y = mul %s, %z")
    ->Apply(elementCases);
BENCHMARK_CAPTURE(elements, softmax, "  %s = add %x, %z\n  %y = softmax %s {axis = 1}")
    ->Apply(elementCases);

} // namespace
} // namespace candela

BENCHMARK_MAIN();
