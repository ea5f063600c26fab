#pragma once

#include "conformance/random/recipe.h"

namespace candela::conformance {

/// A graph as quantizers write it: bytes in, bytes out, and between them floats within dequantize
/// and quantize, each op in a form that raise-quantized knows. Images (convolutions, pools, sums,
/// concatenations) or tokens (products with weights and with each other, Softmax, LayerNorm), with
/// functions of one value in both.
random::Recipe quantizedGraph(uint64_t seed);

} // namespace candela::conformance
