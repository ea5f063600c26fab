#pragma once

#include <map>

#include "conformance/tiers/models/networks.h"

namespace candela::conformance::tiers::models {

/// The layers that the networks share, float or quantized, added to a graph one after the other:
/// the order of the calls is the order of the nodes and of the streams of weights.
class Layers {
public:
  using Value = graph::Value;
  using OpKind = graph::OpKind;
  enum class Activation : uint8_t { none, relu, relu6 };
  struct ConvShape {
    int64_t channels, kernel;
    int64_t stride = 1, groups = 1;
  };
  Layers(std::string name, bool quantized) : quantized_(quantized) { graph.name = std::move(name); }

  Value* op(OpKind kind, const std::vector<Value*>& operands, graph::Attrs attrs = {});
  /// Weights of this deviation.
  Value* weights(const Shape& shape, double deviation);
  Value* constant(const std::vector<float>& values, const Shape& shape);
  Value* scalar(float value) { return constant({value}, {}); }
  Value* ints(const std::vector<int32_t>& values);

  /// Quantized and back where the network is; else x itself.
  Value* boundary(Value* x, float scale, int zeroPoint);
  /// With a bias; the border is such that a stride of 1 keeps the size.
  Value* conv(Value* x, const ConvShape& shape, Activation activation);
  /// x . W + bias over the last dim.
  Value* linear(Value* x, int64_t out);
  Value* layerNorm(Value* x);
  Value* reshape(Value* x, Shape shape) {
    return op(OpKind::Reshape, {x}, {{"shape", std::move(shape)}});
  }
  Value* transpose(Value* x, Shape perm) {
    return op(OpKind::Transpose, {x}, {{"perm", std::move(perm)}});
  }
  /// The slice `at` of `of` equal ones along the last dim.
  Value* part(Value* x, int64_t at, int64_t of);

  graph::Graph graph;

private:
  std::vector<float> draw(int64_t count, double deviation);
  /// i8 with a scale for each of `channels` slices along dim 0, and what they stand for. Scales are
  /// written to *scales.
  Value* int8Weights(const std::vector<float>& values, const Shape& shape, int64_t channels,
                     std::vector<float>* scales);

  bool quantized_;
  uint64_t streams_ = 0;
  std::map<const Value*, float> scales_; ///< of what boundary() gave
};

} // namespace candela::conformance::tiers::models
