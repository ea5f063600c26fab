#pragma once

#include "core/compiler/import/caffe2/step.h"

/// Products of a real operand by the weights and bias that the step has behind it, which quantized
/// operators have too.
namespace candela::import::caffe2 {

/// The convolution that the step's arguments say.
Name convolved(Step& step, const Name& x);

/// x . weights + bias, with the dims of x from the argument `axis` on as one. weights[outputs,
/// ...], or weights[inputs, outputs] where they are transposed.
Name connected(Step& step, const Name& x, bool isTransposed);

} // namespace candela::import::caffe2
