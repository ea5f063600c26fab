#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/unit/compiler/graph/passes/random_graph.h"

namespace candela::testing {

/// What random networks are made of: one generator, one graph, and nodes named node_1, node_2, ...
class NetworkParts {
protected:
  using Value = graph::Value;
  using Kind = graph::OpKind;

  NetworkParts(uint64_t seed, bool quantized) : rng_(seed), quantized_(quantized) {}

  int64_t pick(int64_t count) {
    return static_cast<int64_t>(rng_() % static_cast<uint64_t>(count));
  }
  template <size_t N> int64_t oneOf(const int64_t (&values)[N]) { return values[pick(N)]; }

  Value* op(Kind kind, std::vector<Value*> operands, graph::Attrs attrs = {}) {
    auto node = out_.graph.addNode(kind, std::move(operands), std::move(attrs),
                                   {fmt::format("node_{}", ++names_)});
    if (!node) ADD_FAILURE() << node.status().message();
    return (*node)->result();
  }
  Value* number(double value) {
    return out_.graph.addConstant(Tensor::of<float>(Elem::f32_, {}, {static_cast<float>(value)}));
  }
  /// An input; in a quantized network of numbers that lie in the grids of its boundaries.
  Value* image(const Shape& dims) {
    Value* value = out_.graph.addInput("image", {Elem::f32_, dims});
    out_.inputs.push_back(
        floats(dims, [&](float x) { return quantized_ ? std::round(x * 64) / 64 : x; }));
    return value;
  }
  /// Quantized and back.
  Value* throughBytes(Value* x, Elem elem, uint8_t zeroPoint) {
    Value* zero = out_.graph.addConstant(Tensor::of<uint8_t>(elem, {}, {zeroPoint}));
    // In the grid of the inputs: no quotient comes so near to a half that f32 would round it
    // elsewhere than f64.
    Value* scale = number(static_cast<double>(1 + pick(4)) / 64);
    return op(Kind::Dequantize, {op(Kind::Quantize, {x, scale, zero}), scale, zero});
  }
  Value* byteWeights(const Shape& dims, double size, Elem elem) {
    return op(Kind::Dequantize,
              {out_.graph.addConstant(*randomTensor(elem, dims, rng_())), number(size / 100)});
  }
  Value* floatWeights(const Shape& dims, double size) {
    return out_.graph.addConstant(
        floats(dims, [&](float x) { return x * static_cast<float>(size); }));
  }

  std::mt19937_64 rng_;
  RandomGraph out_;
  const bool quantized_;

private:
  template <typename Map> Tensor floats(const Shape& dims, const Map& map) {
    const Tensor random = *randomTensor(Elem::f32_, dims, rng_());
    std::vector<float> values(random.as<float>(), random.as<float>() + random.count());
    for (float& value : values) value = map(value);
    return Tensor::of<float>(Elem::f32_, dims, values);
  }

  int names_ = 0;
};

} // namespace candela::testing
