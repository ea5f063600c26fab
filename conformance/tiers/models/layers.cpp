#include "conformance/tiers/models/layers.h"
#include "core/support/out_of_memory.h"

#include <algorithm>
#include <cmath>

namespace candela::conformance::tiers::models {

float weightOf(uint64_t stream, uint64_t i) {
  const uint64_t bits = splitmix64(splitmix64(stream) + i);
  return static_cast<float>(static_cast<double>(bits >> 40) * 0x1p-23 - 1);
}

graph::Value* Layers::op(OpKind kind, const std::vector<Value*>& operands, graph::Attrs attrs) {
  const std::string name =
      fmt::format("{}.{}_{}", graph.name, graph::opName(kind), graph.nodeCount());
  return orThrow(graph.addNode(kind, operands, std::move(attrs), {name}))->result();
}

std::vector<float> Layers::draw(int64_t count, double deviation) {
  const uint64_t stream = streams_++;
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(std::sqrt(3.0) * deviation *
                                        weightOf(stream, static_cast<uint64_t>(i))));
  return values;
}

graph::Value* Layers::constant(const std::vector<float>& values, const Shape& shape) {
  return graph.addConstant(Tensor::of(Elem::f32_, shape, values));
}

graph::Value* Layers::weights(const Shape& shape, double deviation) {
  return constant(draw(elementCount(shape).value(), deviation), shape);
}

graph::Value* Layers::ints(const std::vector<int32_t>& values) {
  return graph.addConstant(Tensor::of(Elem::i32_, {static_cast<int64_t>(values.size())}, values));
}

graph::Value* Layers::boundary(Value* x, float scale, int zeroPoint) {
  if (!quantized_) return x;
  Value* step = scalar(scale);
  Value* zero =
      graph.addConstant(Tensor::of<uint8_t>(Elem::u8_, {}, {static_cast<uint8_t>(zeroPoint)}));
  Value* y = op(OpKind::Dequantize, {op(OpKind::Quantize, {x, step, zero}), step, zero});
  scales_[y] = scale;
  return y;
}

graph::Value* Layers::int8Weights(const std::vector<float>& values, const Shape& shape,
                                  int64_t channels, std::vector<float>* scales) {
  const size_t each = values.size() / static_cast<size_t>(channels);
  std::vector<int8_t> stored;
  for (int64_t c = 0; c < channels; ++c) {
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(c) * each);
    float largest = 1e-3f;
    std::for_each_n(first, each,
                    [&](float value) { largest = std::max(largest, std::abs(value)); });
    scales->push_back(largest / 127);
    std::for_each_n(first, each, [&](float value) {
      stored.push_back(static_cast<int8_t>(std::nearbyint(value / scales->back())));
    });
  }
  Value* w = graph.addConstant(Tensor::of(Elem::i8_, shape, stored));
  if (channels == 1) return op(OpKind::Dequantize, {w, scalar(scales->front())});
  return op(OpKind::Dequantize, {w, constant(*scales, {channels})}, {{"axis", int64_t{0}}});
}

graph::Value* Layers::conv(Value* x, const ConvShape& shape, Activation activation) {
  const int64_t inputs = x->type.dim(1) / shape.groups,
                fanIn = inputs * shape.kernel * shape.kernel;
  const Shape kernel{shape.channels, inputs, shape.kernel, shape.kernel};
  const std::vector<float> w =
      draw(shape.channels * fanIn, std::sqrt(2.0 / static_cast<double>(fanIn)));
  const std::vector<float> b = draw(shape.channels, 0.1);
  Value *weight = nullptr, *bias = nullptr;
  if (quantized_) {
    std::vector<float> scales;
    weight = int8Weights(w, kernel, shape.channels, &scales);
    std::vector<int32_t> steps;
    for (size_t c = 0; c < b.size(); ++c) {
      scales[c] *= scales_.at(x);
      steps.push_back(static_cast<int32_t>(std::nearbyint(b[c] / scales[c])));
    }
    bias = op(OpKind::Dequantize, {ints(steps), constant(scales, {shape.channels})},
              {{"axis", int64_t{0}}});
  } else {
    weight = constant(w, kernel);
    bias = constant(b, {shape.channels});
  }
  const int64_t pad = shape.kernel / 2;
  Value* y = op(OpKind::Conv, {x, weight, bias},
                {{"group", shape.groups},
                 {"pads", Shape{pad, pad, pad, pad}},
                 {"strides", Shape{shape.stride, shape.stride}}});
  if (activation == Activation::relu) y = op(OpKind::Relu, {y});
  // Quantized, the range 0..6 of the u8 clips by itself.
  if (activation == Activation::relu6 && !quantized_)
    y = op(OpKind::Clip, {y, scalar(0), scalar(6)});
  return boundary(y, activation == Activation::relu6 ? 6.0f / 255 : kActivationStep,
                  activation == Activation::none ? 128 : 0);
}

graph::Value* Layers::linear(Value* x, int64_t out) {
  const int64_t in = x->type.dim(-1);
  const std::vector<float> w = draw(in * out, 1 / std::sqrt(static_cast<double>(in)));
  std::vector<float> scales;
  Value* weight = quantized_ ? int8Weights(w, {in, out}, 1, &scales) : constant(w, {in, out});
  Value* bias = weights({out}, 0.1);
  return op(OpKind::Add, {op(OpKind::Matmul, {boundary(x, kActivationStep, 128), weight}), bias});
}

graph::Value* Layers::layerNorm(Value* x) {
  const int64_t width = x->type.dim(-1);
  std::vector<float> scale = draw(width, 0.2);
  for (float& value : scale) value += 1;
  Value* factor = constant(scale, {width});
  return op(OpKind::LayerNorm, {x, factor, weights({width}, 0.1)});
}

graph::Value* Layers::part(Value* x, int64_t at, int64_t of) {
  Shape starts(x->type.dims.size(), 0), counts = x->type.shape();
  counts.back() /= of;
  starts.back() = at * counts.back();
  return op(OpKind::Slice, {x},
            {{"starts", starts}, {"counts", counts}, {"steps", Shape(counts.size(), 1)}});
}

} // namespace candela::conformance::tiers::models
