/// EPContext: parts that were compiled before, as nodes of a model of ONNX Runtime.
#ifndef CANDELA_INTEGRATIONS_ONNXRUNTIME_CONTEXT_H
#define CANDELA_INTEGRATIONS_ONNXRUNTIME_CONTEXT_H

#include <functional>
#include <string>
#include <vector>

#include "integrations/onnxruntime/compiler.h"

namespace candela::ort {

/// Whether an EPContext node is of this provider; one of another is theirs.
bool isOwnContext(const Api& api, const NodeView& node);

/// What a fused node becomes in the model that is written.
struct ContextNode {
  std::string name;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  bool isFirst; ///< of the parts of a model
};

/// What is stored of a part: its bundle, or the part as an ONNX model where no bundle can hold it,
/// since it is compiled for the shapes of each run.
struct Stored {
  std::string bytes;
  bool isBundle;
};
/// `onnx`: makes that model. Throws sdk::Error where the part cannot be stored.
Stored store(const sdk::Model& part, const std::function<std::string()>& onnx);

/// The node with what is stored in it, or in a file beside the model that will hold it, which is
/// written. Throws Failure where it cannot be. ONNX Runtime owns the node.
abi::OrtNode* makeContext(const Api& api, const ProviderOptions& options,
                          const std::string& modelPath, const ContextNode& node,
                          const Stored& stored);

/// The part that an EPContext node holds. Throws Failure with what differs, where it was compiled
/// by another version of Candela or for other backends than the session names.
Compiled loadContext(const Api& api, const ProviderOptions& options, const std::string& modelPath,
                     const NodeView& node);

} // namespace candela::ort

#endif
