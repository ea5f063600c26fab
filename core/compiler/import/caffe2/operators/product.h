#pragma once

#include "core/compiler/import/caffe2/step.h"

/// Products of real operands, which quantized operators have too.
namespace candela::import::caffe2 {

/// The convolution that the step's arguments say; no bias where its name is empty.
Name convolved(Step& step, const Name& x, const Name& weights, const Name& bias);

/// weights[outputs, ...], or weights[inputs, outputs] where they are transposed.
struct FullyConnected {
  Name x, weights, bias;
};
/// x . weights + bias, with the dims of x from the argument `axis` on as one.
Name connected(Step& step, const FullyConnected& operands, bool isTransposed);

} // namespace candela::import::caffe2
