/// One compiled part as ONNX Runtime runs it.
#ifndef CANDELA_INTEGRATIONS_ONNXRUNTIME_NODE_COMPUTE_H
#define CANDELA_INTEGRATIONS_ONNXRUNTIME_NODE_COMPUTE_H

#include <string>
#include <vector>

#include "integrations/onnxruntime/compiler.h"
#include "integrations/onnxruntime/profiler.h"

namespace candela::ort {

class NodeCompute : public abi::OrtNodeComputeInfo {
public:
  /// `inputs` and `outputs`: the names of the fused node's values, by position. Throws Failure
  /// where the model has one that is not among them.
  NodeCompute(const Api& api, Recorder& recorder, Compiled model,
              const std::vector<std::string>& inputs, const std::vector<std::string>& outputs);

  const sdk::Model& model() const { return *model_; }

private:
  /// A value of the model and its position at the fused node.
  struct Bound {
    sdk::Port port;
    size_t position;
  };

  static std::vector<Bound> bind(const std::vector<sdk::Port>& ports,
                                 const std::vector<std::string>& names, const char* what);
  void run(abi::OrtKernelContext* context) const;
  candela_tensor_t inputOf(const abi::OrtKernelContext* context, const Bound& input) const;
  candela_tensor_t outputOf(abi::OrtKernelContext* context, const Bound& output) const;
  void copyOut(abi::OrtKernelContext* context, const Bound& output,
               const candela_tensor_t& made) const;

  const Api& api_;
  Recorder& recorder_;
  Compiled model_;
  std::vector<Bound> inputs_;
  std::vector<Bound> outputs_;
};

} // namespace candela::ort

#endif
