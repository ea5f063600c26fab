/// Which nodes of a graph go to Candela, and in which groups.
#ifndef CANDELA_INTEGRATIONS_ONNXRUNTIME_CAPABILITY_H
#define CANDELA_INTEGRATIONS_ONNXRUNTIME_CAPABILITY_H

#include <map>
#include <string>
#include <vector>

#include "integrations/onnxruntime/compiler.h"

namespace candela::ort {

struct Capability {
  std::vector<Part> parts;                 ///< connected, acyclic, each as large as it can be
  std::map<std::string, std::string> left; ///< why a node stays with ONNX Runtime, by its name
  std::vector<std::string> kept;           ///< keys of what the compiler keeps of the parts
};

/// Asks Candela and its backends by compiling: all that could go first, then without what could
/// not. A node that is in an EPContext of its own is in no part.
Capability capabilityOf(Compiler& compiler, const ProviderOptions& options, const GraphView& graph);

/// Whether the node with its subgraphs is Candela's as a whole: then what is in them is not asked
/// for on its own. `opsets`: a view of the graph that the node is in, or of one of its subgraphs.
bool takesWhole(const Api& api, Compiler& compiler, const ProviderOptions& options,
                const abi::OrtNode* node, const GraphView& opsets);

/// Whether the node holds a part that this provider compiled.
bool isContext(const NodeView& node);

} // namespace candela::ort

#endif
