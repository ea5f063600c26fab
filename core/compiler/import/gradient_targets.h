#pragma once

#include "core/compiler/import/onnx_io/model.h"

namespace candela::import {

/// A node Gradient names what it differentiates by an attribute, y. These are the same nodes where
/// that is the last input of each such node too, so that it is known when the node is imported.
/// `rewritten` holds them where there are any.
const std::vector<onnx_io::Node>& withGradientTargets(const std::vector<onnx_io::Node>& nodes,
                                                      std::vector<onnx_io::Node>& rewritten);

} // namespace candela::import
