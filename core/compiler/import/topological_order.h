#pragma once

#include <vector>

#include "core/compiler/import/onnx_io/model.h"

namespace candela::import {

struct TopologicalOrder {
  /// every node that can run, producers first, otherwise in the file's order
  std::vector<size_t> nodes;
  std::vector<size_t> stuck; ///< nodes in or behind a cycle, in the file's order
  std::vector<size_t> cycle; ///< one of the cycles: each node reads a result of the one before, the
                             ///< first of the last
};

/// Names that no node defines do not hold a node back: they are GraphImporter's to judge.
TopologicalOrder topologicalOrder(const std::vector<onnx_io::Node>& nodes);

} // namespace candela::import
