#pragma once

#include "core/compiler/graph/graph.h"

namespace candela::graph {

/// The window attributes of conv and the pools with their defaults filled in: one entry per spatial
/// dim.
struct Window {
  Shape kernel, strides, dilations;
  Shape padsBegin, padsEnd;
  bool ceilMode = false;

  int rank() const { return static_cast<int>(kernel.size()); }
  /// Elements from the first to the last of a window.
  int64_t span(int dim) const {
    return kernel[dim] == 0 ? 0 : (kernel[dim] - 1) * dilations[dim] + 1;
  }
  /// How many windows an input extent gives; in ceil mode none starts in the padding at the end.
  /// The verifier saw to it that the window fits.
  int64_t count(int dim, int64_t extent) const;
};

/// Of a node that was verified. `kernel`: conv's comes from its weight.
Window windowOf(const Node& node, Shape kernel);

/// The same with checks: `countId` is the constraint that an attribute's number of values breaks,
/// `fitId` the one of a kernel larger than its padded input. `extents`: the spatial dims of the
/// input.
Result<Window> checkWindow(const Node& node, Shape kernel, const Shape& extents,
                           std::string_view countId, std::string_view fitId);

} // namespace candela::graph
