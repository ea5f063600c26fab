#include "integrations/onnxruntime/node_compute.h"

#include <algorithm>
#include <cstring>

namespace candela::ort {

using namespace abi;

namespace {

candela_tensor_t described(candela_elem_t elem, const std::vector<int64_t>& dims) {
  if (dims.size() > CANDELA_MAX_RANK)
    throw Failure(ErrorCode::NotImplemented, "a tensor of rank " + std::to_string(dims.size()) +
                                                 ", at most " + std::to_string(CANDELA_MAX_RANK));
  candela_tensor_t tensor{};
  tensor.elem = elem;
  tensor.rank = static_cast<uint32_t>(dims.size());
  std::copy(dims.begin(), dims.end(), tensor.dims);
  return tensor;
}

/// What the library allocated, freed whatever happens.
class Allocated {
public:
  explicit Allocated(std::vector<candela_tensor_t>& outputs) : outputs_(outputs) {
    for (const candela_tensor_t& output : outputs) isOurs_.push_back(output.data == nullptr);
  }
  ~Allocated() {
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (isOurs_[i]) candela_free_data(outputs_[i].data);
  }
  Allocated(const Allocated&) = delete;
  Allocated& operator=(const Allocated&) = delete;
  bool at(size_t i) const { return isOurs_[i]; }

private:
  std::vector<candela_tensor_t>& outputs_;
  std::vector<bool> isOurs_;
};

} // namespace

NodeCompute::NodeCompute(const Api& api, Recorder& recorder, Compiled model,
                         const std::vector<std::string>& inputs,
                         const std::vector<std::string>& outputs)
    : OrtNodeComputeInfo{}, api_(api), recorder_(recorder), model_(std::move(model)) {
  inputs_ = bind(model_->inputs(), inputs, "input");
  outputs_ = bind(model_->outputs(), outputs, "output");
  ort_version_supported = kApiVersion;
  CreateState = [](OrtNodeComputeInfo* self, OrtNodeComputeContext*, void** state) -> OrtStatus* {
    *state = self; // runs of one model keep nothing between them that is not the model's
    return nullptr;
  };
  Compute = [](OrtNodeComputeInfo* self, void*, OrtKernelContext* context) {
    const auto* const node = static_cast<NodeCompute*>(self);
    return guarded(node->api_, [&] { node->run(context); });
  };
  ReleaseState = [](OrtNodeComputeInfo*, void*) {};
}

std::vector<NodeCompute::Bound> NodeCompute::bind(const std::vector<sdk::Port>& ports,
                                                  const std::vector<std::string>& names,
                                                  const char* what) {
  std::vector<Bound> bound;
  for (const sdk::Port& port : ports) {
    const auto found = std::find(names.begin(), names.end(), port.name);
    if (found == names.end())
      throw Failure(ErrorCode::InvalidGraph, std::string("the compiled part has ") + what + " '" +
                                                 port.name + "', which the node has not");
    bound.push_back({port, static_cast<size_t>(found - names.begin())});
  }
  return bound;
}

candela_tensor_t NodeCompute::inputOf(const OrtKernelContext* context, const Bound& input) const {
  const auto* value = api_.get<const OrtValue*>(KernelContext_GetInput, context, input.position);
  if (!value)
    throw Failure(ErrorCode::InvalidArgument, "input '" + input.port.name + "' is missing");
  const auto info = owned(api_, api_.get<OrtTensorTypeAndShapeInfo*>(GetTensorTypeAndShape, value),
                          ReleaseTensorTypeAndShapeInfo);
  const OrtTensorTypeAndShapeInfo* const shape = info.get();
  std::vector<int64_t> dims(api_.get<size_t>(GetDimensionsCount, shape));
  if (!dims.empty()) api_.call(GetDimensions, shape, dims.data(), dims.size());
  candela_tensor_t tensor =
      described(elementOf(api_.get<ElementType>(GetTensorElementType, shape)), dims);
  tensor.bytes = api_.get<size_t>(GetTensorSizeInBytes, value);
  // A tensor without elements may lie nowhere, and no data is a state that goes on.
  static char nothing[CANDELA_ALIGNMENT];
  tensor.data = nothing;
  if (tensor.bytes > 0)
    tensor.data = const_cast<void*>(api_.get<const void*>(GetTensorData, value));
  return tensor;
}

candela_tensor_t NodeCompute::outputOf(OrtKernelContext* context, const Bound& output) const {
  const sdk::Port& port = output.port;
  if (!port.isKnown() || port.bytes == 0) return {};
  candela_tensor_t tensor = described(port.elem, port.dims);
  auto* value = api_.get<OrtValue*>(KernelContext_GetOutput, context, output.position,
                                    port.dims.data(), port.dims.size());
  tensor.bytes = api_.get<size_t>(GetTensorSizeInBytes, static_cast<const OrtValue*>(value));
  tensor.data = api_.get<void*>(GetTensorMutableData, value);
  return tensor;
}

void NodeCompute::copyOut(OrtKernelContext* context, const Bound& output,
                          const candela_tensor_t& made) const {
  auto* value =
      api_.get<OrtValue*>(KernelContext_GetOutput, context, output.position,
                          static_cast<const int64_t*>(made.dims), static_cast<size_t>(made.rank));
  const size_t room = api_.get<size_t>(GetTensorSizeInBytes, static_cast<const OrtValue*>(value));
  if (room != made.bytes)
    throw Failure(ErrorCode::EpFail, "output '" + output.port.name + "' has " +
                                         std::to_string(made.bytes) +
                                         " bytes, and ONNX Runtime makes room for " +
                                         std::to_string(room) + ": their types differ");
  if (room > 0) std::memcpy(api_.get<void*>(GetTensorMutableData, value), made.data, room);
}

void NodeCompute::run(OrtKernelContext* context) const {
  std::vector<candela_tensor_t> inputs;
  std::vector<candela_tensor_t> outputs;
  inputs.reserve(inputs_.size());
  outputs.reserve(outputs_.size());
  for (const Bound& input : inputs_) inputs.push_back(inputOf(context, input));
  for (const Bound& output : outputs_) outputs.push_back(outputOf(context, output));
  const Allocated allocated(outputs);
  const auto begin = Recorder::Clock::now();
  model_->run(inputs, outputs);
  if (recorder_.isWanted()) recorder_.record(*model_, begin);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (allocated.at(i)) copyOut(context, outputs_[i], outputs[i]);
}

} // namespace candela::ort
