#pragma once

#include "core/compiler/import/term.h"

/// What operators say about windows over the spatial dims of x[n, c, spatial..].
namespace candela::import {

/// One value per spatial dim, pads two.
struct Window {
  std::vector<int64_t> kernel, strides, dilations, pads;
  bool fixed = false; ///< auto_pad decided: the result has the size that it asks for

  Attrs attrs() const { return {{"strides", strides}, {"dilations", dilations}, {"pads", pads}}; }
};

/// The spatial dims of a weight, which kernel_shape may repeat.
std::vector<int64_t> kernelOf(NodeContext& context, const graph::TensorType& weight);
/// Of a pool, with auto_pad resolved. dilatedSince: the opset that brought dilations.
Window poolWindow(NodeContext& context, int dilatedSince);
/// Whether windows may reach beyond the padding at the end. `since`: the opset that brought it.
bool ceilMode(NodeContext& context, const Window& window, int since);

} // namespace candela::import
