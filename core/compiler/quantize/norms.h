#pragma once

#include "core/compiler/quantize/network.h"

namespace candela::quantize {

/// Makes one node of each RMSNorm that is written as a square, a mean, a root and products, as
/// exports older than opset 23 have it: only then its inner values need no steps. The model is of
/// opset 23 where one was found. A model whose opset cannot be raised stays as it is.
void joinNorms(Network& network);

} // namespace candela::quantize
