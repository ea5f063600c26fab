#pragma once

#include <map>
#include <set>
#include <string>

#include "core/compiler/import/onnx_io/model.h"

namespace candela::import {

/// Names that the graph and the graphs in it read from the graphs around them.
void collectOuterNames(const onnx_io::Graph& graph, std::set<std::string>& names);
/// The graph with those names replaced.
onnx_io::Graph withOuterNames(const onnx_io::Graph& graph,
                              const std::map<std::string, std::string>& names);

} // namespace candela::import
