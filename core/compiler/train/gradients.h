#pragma once

#include "core/compiler/import/import.h"
#include "core/compiler/import/onnx_io/model.h"

/// A model whose outputs are a value and its gradients.
namespace candela::train {

/// What of a model is differentiated, by names.
struct GradientRequest {
  std::string of;               ///< an output; empty: the only one of floats
  std::vector<std::string> wrt; ///< inputs and initializers, of floats; empty: all such inputs
};

/// Inputs: the graph's, and d_<of> of its type where that has more than one element: what each
/// counts in the sum that is differentiated. Outputs: the value, then d_<name> for each of `wrt`,
/// in its order.
/// Failures: invalid_argument for names that are none, or no floats; unsupported, with node, op and
/// reason, where an op has no gradient.
Result<graph::Graph> gradientGraph(graph::Graph graph, const GradientRequest& request);
/// The same of a model's main graph. Failures: those of import too.
Result<graph::Graph> gradientGraph(const import::onnx_io::Model& model,
                                   const GradientRequest& request,
                                   const import::ImportOptions& options);

} // namespace candela::train
