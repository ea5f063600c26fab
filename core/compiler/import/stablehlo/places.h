#pragma once

#include "core/compiler/import/stablehlo/step.h"

/// Places of elements, as indices that operators of ONNX take.
namespace candela::import::stablehlo {

/// Beyond the extent of any dim: sums and products of two fit.
inline constexpr int64_t kMostExtent = int64_t(1) << 30;

/// Operand `input` as i64, moved into 0..most.
Name insideDim(Step& step, size_t input, int64_t most);
/// The first element of a constant, moved so.
int64_t knownInside(const Tensor& place, int64_t most);
/// The same of a value.
Name inside(Step& step, const Name& place, int64_t most);

/// 0, 1, 2, ... along one of these dims, with extents of 1 along the others, i64.
Part countAlong(Step& step, const Shape& dims, size_t axis);

/// Columns of places along a new last dim: each broadcasts to `dims`.
Name joinColumns(Step& step, const std::vector<Name>& columns, const Shape& dims);

} // namespace candela::import::stablehlo
