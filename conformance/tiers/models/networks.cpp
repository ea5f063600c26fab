#include "conformance/tiers/models/networks.h"

#include <cmath>
#include <functional>

#include "conformance/tiers/models/layers.h"
#include "core/compiler/graph/loop.h"
#include "core/support/out_of_memory.h"

namespace candela::conformance::tiers::models {
namespace {

using graph::Graph, graph::OpKind, graph::Value;
using Activation = Layers::Activation;

Graph finished(Layers& layers, Value* out) {
  layers.graph.addOutput(out, "out");
  return std::move(layers.graph);
}

/// Three layers, and what a classifier ends with.
Graph buildMlp(const NetworkForm& form) {
  Layers l("mlp", form.quantized);
  const int64_t width = form.large ? 512 : 48;
  Value* x = l.graph.addInput("x", {Elem::f32_, {form.batch, form.large ? 256 : 37}});
  x = l.op(OpKind::Relu, {l.linear(x, width)});
  x = l.op(form.quantized ? OpKind::Relu : OpKind::Tanh, {l.linear(x, width)});
  x = l.linear(x, 10);
  return finished(l, form.quantized ? l.boundary(x, kActivationStep, 128)
                                    : l.op(OpKind::Softmax, {x}));
}

/// Convolutions with residuals, one of them across a stride, and an inverted bottleneck with a
/// depthwise convolution.
Graph buildCnn(const NetworkForm& form) {
  Layers l("cnn", form.quantized);
  const int64_t size = form.large ? 48 : 13;
  const int64_t channels = form.large ? 32 : 8;
  const int64_t blocks = form.large ? 3 : 1;
  Value* x = l.graph.addInput("x", {Elem::f32_, {form.batch, 3, size, size}});
  x = l.conv(l.boundary(x, kActivationStep, 128), {channels, 3}, Activation::relu);
  x = l.op(OpKind::MaxPool, {x},
           {{"kernel_shape", Shape{3, 3}}, {"strides", Shape{2, 2}}, {"pads", Shape{1, 1, 1, 1}}});
  x = l.boundary(x, kActivationStep, 0);
  const auto join = [&](Value* a, Value* b) {
    return l.boundary(l.op(OpKind::Relu, {l.op(OpKind::Add, {a, b})}), kActivationStep, 0);
  };
  for (int64_t block = 0; block < blocks; ++block)
    x = join(l.conv(l.conv(x, {channels, 3}, Activation::relu), {channels, 3}, Activation::none),
             x);
  Value* shortcut = l.conv(x, {2 * channels, 1, 2}, Activation::none);
  x = join(
      l.conv(l.conv(x, {channels, 1}, Activation::relu), {2 * channels, 3, 2}, Activation::none),
      shortcut);
  for (int64_t block = 0; block < blocks; ++block) {
    Value* y = l.conv(x, {4 * channels, 1}, Activation::relu6);
    y = l.conv(y, {4 * channels, 3, 1, 4 * channels}, Activation::relu6);
    y = l.conv(y, {2 * channels, 1}, Activation::none);
    x = l.boundary(l.op(OpKind::Add, {y, x}), kActivationStep, 128);
  }
  x = l.boundary(l.op(OpKind::GlobalAveragePool, {x}), kActivationStep / 2, 128);
  x = l.linear(l.reshape(x, {form.batch, 2 * channels}), 10);
  return finished(l, l.boundary(x, kActivationStep, 128));
}

/// Down, and up again: by repeated elements and by a transposed convolution, joined with what was
/// there on the way.
Graph buildUnet(const NetworkForm& form) {
  Layers l("unet", form.quantized);
  const int64_t n = form.batch;
  const int64_t size = form.large ? 40 : 12;
  const int64_t channels = form.large ? 24 : 6;
  Value* x = l.graph.addInput("x", {Elem::f32_, {n, 2, size, size}});
  Value* top = l.conv(l.boundary(x, kActivationStep, 128), {channels, 3}, Activation::relu);
  Value* middle = l.conv(top, {2 * channels, 3, 2}, Activation::relu);
  Value* bottom = l.conv(middle, {2 * channels, 3, 2}, Activation::relu);
  const auto joined = [&](Value* a, Value* b) {
    return l.boundary(l.op(OpKind::Concat, {a, b}, {{"axis", int64_t{1}}}), kActivationStep, 0);
  };
  // Every element twice in both directions.
  const int64_t quarter = size / 4;
  Value* up = l.reshape(bottom, {n, 2 * channels, quarter, 1, quarter, 1});
  up = l.op(OpKind::Expand, {up}, {{"shape", Shape{n, 2 * channels, quarter, 2, quarter, 2}}});
  up = joined(l.reshape(up, {n, 2 * channels, 2 * quarter, 2 * quarter}), middle);
  up = l.conv(up, {channels, 3}, Activation::relu);
  up = l.op(OpKind::ConvTranspose,
            {up, l.weights({channels, channels, 2, 2}, 1 / std::sqrt(double(channels)))},
            {{"strides", Shape{2, 2}}});
  up = l.boundary(l.op(OpKind::Relu, {up}), kActivationStep, 0);
  up = l.conv(joined(up, top), {channels, 3}, Activation::relu);
  return finished(l, l.conv(up, {1, 1}, Activation::none));
}

/// Encoder layers: heads as they are spelled out by exporters, an exact GELU, norms behind the
/// sums.
Graph buildTransformer(const NetworkForm& form) {
  Layers l("transformer", form.quantized);
  const int64_t n = form.batch;
  const int64_t length = form.large ? 48 : 7;
  const int64_t width = form.large ? 96 : 24;
  const int64_t heads = form.large ? 6 : 3;
  const int64_t each = width / heads;
  Value* x = l.graph.addInput("x", {Elem::f32_, {n, length, width}});
  for (int layer = 0; layer < (form.large ? 2 : 1); ++layer) {
    const auto split = [&](Value* y, Shape perm) {
      return l.transpose(l.reshape(y, {n, length, heads, each}), std::move(perm));
    };
    Value* query = split(l.linear(x, width), {0, 2, 1, 3});
    Value* key = split(l.linear(x, width), {0, 2, 3, 1});
    Value* value = split(l.linear(x, width), {0, 2, 1, 3});
    Value* scores = l.op(OpKind::Matmul, {query, key});
    scores = l.op(OpKind::Softmax, {l.op(OpKind::Div, {scores, l.scalar(std::sqrt(float(each)))})});
    Value* mixed = l.transpose(l.op(OpKind::Matmul, {scores, value}), {0, 2, 1, 3});
    x = l.layerNorm(l.op(OpKind::Add, {x, l.linear(l.reshape(mixed, {n, length, width}), width)}));
    Value* inner = l.linear(x, 3 * width);
    Value* gate = l.op(OpKind::Erf, {l.op(OpKind::Div, {inner, l.scalar(1.41421356f)})});
    gate = l.op(OpKind::Add, {gate, l.scalar(1)});
    gate = l.op(OpKind::Mul, {l.op(OpKind::Mul, {inner, gate}), l.scalar(0.5f)});
    x = l.layerNorm(l.op(OpKind::Add, {x, l.linear(gate, width)}));
  }
  return finished(l, x);
}

/// A loop over [steps, batch, inputs], forward or backward, around what `step` makes of the slice
/// and of the states. The products with the inputs, gates x hidden wide, stand before it. Gives the
/// stacked first state.
Value*
recur(Layers& l, Value* x, int64_t gates, int64_t hidden, size_t states, bool backward,
      const std::function<std::vector<Value*>(
          Layers& body, Value* sums, const std::vector<Value*>& states, Value* weights)>& step) {
  const int64_t steps = x->type.dim(0), batch = x->type.dim(1);
  Value* sums = l.linear(x, gates * hidden);
  std::vector<Value*> operands;
  for (size_t s = 0; s < states; ++s)
    operands.push_back(
        l.constant(std::vector<float>(static_cast<size_t>(batch * hidden), 0.0f), {batch, hidden}));
  operands.push_back(sums);
  operands.push_back(l.weights({hidden, gates * hidden}, 1 / std::sqrt(double(hidden))));
  const std::string name = fmt::format("{}.loop_{}", l.graph.name, l.graph.nodeCount());
  Layers body(name, false);
  std::vector<Value*> carried;
  for (size_t s = 0; s < states; ++s)
    carried.push_back(body.graph.addInput(fmt::format("state{}", s), operands[s]->type));
  Value* slice = body.graph.addInput("sums", {Elem::f32_, {batch, gates * hidden}});
  Value* weights = body.graph.addInput("weights", operands.back()->type);
  const std::vector<Value*> next = step(body, slice, carried, weights);
  for (size_t s = 0; s < states; ++s) body.graph.addOutput(next[s], fmt::format("next{}", s));
  body.graph.addOutput(next[0], "stacked");
  graph::LoopForm form{steps, states, 1, std::vector<int64_t>(2, backward)};
  return orThrow(graph::addLoop(l.graph, form, operands, std::move(body.graph), {name}))
      ->result(states);
}

struct SequenceShape {
  int64_t steps, inputs, hidden;
};
SequenceShape sequenceOf(const NetworkForm& form) {
  return form.large ? SequenceShape{24, 40, 64} : SequenceShape{5, 6, 11};
}

/// Both directions, side by side.
Graph buildLstm(const NetworkForm& form) {
  Layers l("lstm", false);
  const auto [steps, inputs, hidden] = sequenceOf(form);
  Value* x = l.graph.addInput("x", {Elem::f32_, {steps, form.batch, inputs}});
  const auto step = [](Layers& body, Value* sums, const std::vector<Value*>& states,
                       Value* weights) {
    Value* all = body.op(OpKind::Add, {sums, body.op(OpKind::Matmul, {states[0], weights})});
    const auto gate = [&](int64_t at) { return body.op(OpKind::Sigmoid, {body.part(all, at, 4)}); };
    Value* kept = body.op(OpKind::Mul, {gate(0), states[1]});
    Value* taken = body.op(OpKind::Mul, {gate(1), body.op(OpKind::Tanh, {body.part(all, 2, 4)})});
    Value* cell = body.op(OpKind::Add, {kept, taken});
    Value* out = body.op(OpKind::Mul, {gate(3), body.op(OpKind::Tanh, {cell})});
    return std::vector<Value*>{out, cell};
  };
  std::vector<Value*> sides;
  for (const bool backward : {false, true})
    sides.push_back(recur(l, x, 4, hidden, 2, backward, step));
  return finished(l, l.linear(l.op(OpKind::Concat, sides, {{"axis", int64_t{2}}}), 5));
}

Graph buildGru(const NetworkForm& form) {
  Layers l("gru", false);
  const auto [steps, inputs, hidden] = sequenceOf(form);
  Value* x = l.graph.addInput("x", {Elem::f32_, {steps, form.batch, inputs}});
  Value* y = recur(
      l, x, 3, hidden, 1, false,
      [](Layers& body, Value* sums, const std::vector<Value*>& states, Value* weights) {
        Value* own = body.op(OpKind::Matmul, {states[0], weights});
        const auto gate = [&](int64_t at) {
          return body.op(OpKind::Sigmoid,
                         {body.op(OpKind::Add, {body.part(sums, at, 3), body.part(own, at, 3)})});
        };
        Value* update = gate(0);
        Value* seen = body.op(OpKind::Mul, {gate(1), body.part(own, 2, 3)});
        Value* fresh = body.op(OpKind::Tanh, {body.op(OpKind::Add, {body.part(sums, 2, 3), seen})});
        Value* change = body.op(OpKind::Mul, {update, body.op(OpKind::Sub, {states[0], fresh})});
        return std::vector<Value*>{body.op(OpKind::Add, {fresh, change})};
      });
  return finished(l, l.linear(y, 5));
}

} // namespace

std::span<const Network> allNetworks() {
  using Quantized = Network::Quantized;
  static constexpr Network networks[] = {
      {"cnn", Quantized::steps, buildCnn},   {"mlp", Quantized::steps, buildMlp},
      {"unet", Quantized::steps, buildUnet}, {"transformer", Quantized::reals, buildTransformer},
      {"lstm", Quantized::none, buildLstm},  {"gru", Quantized::none, buildGru},
  };
  return networks;
}

Decoder buildDecoder(int64_t batch) {
  constexpr int64_t kWidth = 16, kHeads = 2, kEach = kWidth / kHeads, kPlaces = 6;
  Layers l("decoder", false);
  Decoder decoder{{}, {"place=next_place"}, kPlaces};
  Value* x = l.graph.addInput("token", {Elem::f32_, {batch, 1, kWidth}});
  Value* place = l.graph.addInput("place", {Elem::i32_, {1}});
  std::vector<std::pair<Value*, std::string>> outputs;
  // Places behind this one are not seen.
  std::vector<int32_t> places(kPlaces);
  for (int32_t p = 0; p < kPlaces; ++p) places[static_cast<size_t>(p)] = p;
  Value* behind = l.op(OpKind::Less, {place, l.ints(places)});
  for (int layer = 0; layer < 2; ++layer) {
    Value* h = l.layerNorm(x);
    const auto row = [&] { return l.reshape(l.linear(h, kWidth), {batch * kHeads, 1, kEach}); };
    const auto cached = [&](const char* what) {
      const std::string name = fmt::format("{}{}", what, layer);
      Value* past =
          l.graph.addInput("past_" + name, {Elem::f32_, {batch * kHeads, kPlaces, kEach}});
      Value* present = l.op(OpKind::Put, {past, place, row()});
      outputs.emplace_back(present, "present_" + name);
      decoder.states.push_back(fmt::format("past_{0}=present_{0}", name));
      return present;
    };
    Value* query = row();
    Value *keys = cached("key"), *values = cached("value");
    Value* scores = l.op(OpKind::Matmul, {query, l.transpose(keys, {0, 2, 1})});
    scores = l.op(OpKind::Mul, {scores, l.scalar(1 / std::sqrt(float(kEach)))});
    scores = l.op(OpKind::Softmax, {l.op(OpKind::Select, {behind, l.scalar(-1e9f), scores})});
    Value* mixed = l.reshape(l.op(OpKind::Matmul, {scores, values}), {batch, 1, kWidth});
    x = l.op(OpKind::Add, {x, l.linear(mixed, kWidth)});
    Value* inner = l.op(OpKind::Relu, {l.linear(l.layerNorm(x), 2 * kWidth)});
    x = l.op(OpKind::Add, {x, l.linear(inner, kWidth)});
  }
  l.graph.addOutput(l.linear(l.layerNorm(x), 9), "out");
  l.graph.addOutput(l.op(OpKind::Add, {place, l.ints({1})}), "next_place");
  for (const auto& [value, name] : outputs) l.graph.addOutput(value, name);
  decoder.graph = std::move(l.graph);
  return decoder;
}

} // namespace candela::conformance::tiers::models
