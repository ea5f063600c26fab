#pragma once

#include "core/support/tensor.h"

/// How several operands walk one index space: what a question to a target and the instruction that
/// is emitted later must agree on.
namespace candela::capabilities {

/// Common dims, and each operand's strides in elements.
struct Walk {
  Shape dims;
  std::vector<std::vector<int64_t>> strides;
};

/// The same walk in the fewest dims, at least one: dims of extent 1 go, neighbours that every
/// operand walks as one merge. The order of visits stays. An empty walk becomes dims {0}.
Walk coalesce(const Walk& walk);

/// [outer, dims[axis], inner] of a dense tensor; an axis below 0 counts from the end.
Shape aroundAxis(const Shape& dims, int64_t axis);

/// Strides of a dense operand of `shape` when it is broadcast, NumPy-style, to `dims`; 0 where it
/// repeats.
std::vector<int64_t> broadcastStrides(const Shape& shape, const Shape& dims);

/// The shape of what broadcasts as `shape` to `from`, to broadcast alike to `to`, which has the
/// same elements in the same order; nullopt where no shape does.
std::optional<Shape> shapeOver(const Shape& shape, const Shape& from, const Shape& to);

} // namespace candela::capabilities
