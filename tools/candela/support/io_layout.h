#pragma once

#include "tools/candela/support/model.h"

/// Models whose images have their channels last where they come in and go out: --io-layout.
namespace candela::tool {

/// Where --io-layout was given, makes a copy of the model with these inputs and outputs what is
/// compiled: those of four dims are N, H, W, C where the model says N, C, H, W. Names stay. An
/// output that is dequantized is taken before that. Throws Failure naming the model: an unknown
/// layout, no ONNX model, or no border of four dims.
void layOutBorders(ModelOptions& options);

} // namespace candela::tool
