#pragma once

#include <optional>

#include "core/compiler/quantize/network.h"

/// Where the weights of a product have their channels, sums and steps.
namespace candela::quantize {

/// The dims of constant weights that are the channels of the result, and along which a sum goes.
struct WeightAxes {
  int channel = 0, sum = 1;
};
WeightAxes axesOf(const import::onnx_io::Node& product, const Tensor& weights);

/// The element's place among the steps: which of them it belongs to.
class StepOf {
public:
  /// `block`: so many elements along `axis` share a step; 0: a step for each index of the axis.
  StepOf(const Shape& dims, int axis, int64_t block);
  int64_t operator()(int64_t element) const;
  int64_t blocks() const { return blocks_; }

private:
  int64_t inner_ = 1, along_, block_, blocks_;
};

/// Weights of a Conv, Gemm or MatMul as [groups][outputs][inputs][taps], whatever their layout:
/// within a group each output channel is a sum over its inputs and their taps.
struct WeightView {
  struct Dim {
    int64_t count = 1, stride = 0;
  };
  Dim groups, outputs, inputs, taps;

  int64_t at(int64_t group, int64_t output, int64_t input, int64_t tap) const {
    return group * groups.stride + output * outputs.stride + input * inputs.stride +
           tap * taps.stride;
  }
  int64_t outputChannels() const { return groups.count * outputs.count; }
  int64_t inputChannels() const { return groups.count * inputs.count; }
  /// Length of a sum.
  int64_t terms() const { return inputs.count * taps.count; }
};
/// `taps`: so many rows of a Gemm or MatMul count as one input, as behind a Flatten; 1 for Conv,
/// which has its kernel. nullopt: weights that differ by batch, or rows that `taps` does not
/// divide.
std::optional<WeightView> viewOf(const import::onnx_io::Node& product, const Tensor& weights,
                                 int64_t taps = 1);

} // namespace candela::quantize
