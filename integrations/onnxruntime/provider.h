/// The provider of one session, and what makes it.
#ifndef CANDELA_INTEGRATIONS_ONNXRUNTIME_PROVIDER_H
#define CANDELA_INTEGRATIONS_ONNXRUNTIME_PROVIDER_H

#include <memory>
#include <string>
#include <vector>

#include "integrations/onnxruntime/capability.h"
#include "integrations/onnxruntime/node_compute.h"
#include "integrations/onnxruntime/options.h"

namespace candela::ort {

class Provider : public abi::OrtEp {
public:
  /// Throws where the options cannot be served. `logger` is the session's.
  Provider(const Api& api, const ProviderOptions& options, const abi::OrtLogger* logger);

private:
  struct Fused {
    const abi::OrtGraph* graph;
    const abi::OrtNode* node;
    bool isFirst;
  };

  void claim(const abi::OrtGraph* graph, abi::OrtEpGraphSupportInfo* support);
  void claimContexts(const GraphView& graph, abi::OrtEpGraphSupportInfo* support);
  bool mayClaim(const GraphView& graph);
  bool isInsideTaken(const abi::OrtGraph* graph, const GraphView& view);
  std::unique_ptr<NodeCompute> compile(const Fused& fused, abi::OrtNode** context);
  std::unique_ptr<NodeCompute> computeOf(Compiled model, const std::vector<std::string>& inputs,
                                         const std::vector<std::string>& outputs);
  void release(abi::OrtNodeComputeInfo** infos, size_t count);
  void writeTrace(const sdk::Model& model);
  void tell(const GraphView& graph, const Capability& capability, bool isNested) const;

  const Api& api_;
  ProviderOptions options_;
  const abi::OrtLogger* logger_;
  Compiler compiler_;
  Recorder recorder_;
  std::string compatibility_;
  size_t traces_ = 0;
  std::string claimed_; ///< outputs of the one graph that has parts, in older releases
};

/// What a compiled model says of the Candela that made it, and whether that is this one.
std::string compatibilityOf(const std::string& backends);
bool isCompatible(const std::string& compatibility);

} // namespace candela::ort

#endif
