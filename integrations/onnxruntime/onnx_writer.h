/// Parts of a graph of ONNX Runtime as an ONNX model in memory.
#ifndef CANDELA_INTEGRATIONS_ONNXRUNTIME_ONNX_WRITER_H
#define CANDELA_INTEGRATIONS_ONNXRUNTIME_ONNX_WRITER_H

#include <set>
#include <string>
#include <vector>

#include "integrations/onnxruntime/graph_view.h"

namespace candela::ort {

/// Nodes of one graph and what goes in and out of them.
struct Part {
  std::vector<size_t> nodes;          ///< of GraphView::nodes, sorted
  std::vector<std::string> inputs;    ///< values that are no constants and that no node makes
  std::vector<std::string> constants; ///< constant initializers that a node reads
  std::vector<std::string> outputs;   ///< values that are needed outside
};

/// The part that these nodes are, whose outputs are those that the rest of the graph reads.
Part partOf(const GraphView& graph, const std::vector<size_t>& nodes);

/// The part as the bytes of a .onnx file. Nodes bear their names of the view, open dims without a
/// name get one. Throws Failure: an attribute that cannot be read, more than 2 GiB.
std::string writeModel(const Api& api, const GraphView& graph, const Part& part);

/// The name of an open dim in the model: its own, or one that its value and axis make.
std::string nameOfDim(const std::string& value, size_t axis, const Dim& dim);

} // namespace candela::ort

#endif
