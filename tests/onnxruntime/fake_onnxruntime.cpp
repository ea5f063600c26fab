#include "tests/onnxruntime/fake_onnxruntime.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>

namespace candela::ort {

namespace abi {
struct OrtApi {
  void* slots[400];
};
struct OrtEpApi {
  void* slots[80];
};
struct OrtModelEditorApi {
  void* slots[32];
};
} // namespace abi

using namespace abi;

namespace {

OrtApi api;
OrtEpApi epApi;
OrtModelEditorApi editorApi;
uint32_t newestVersion = 0;
size_t behindTexts = 0;

void notThere() {
  std::fprintf(stderr, "a function was called that the tests do not have\n");
  std::abort();
}

template <typename Table, typename Result, typename... Arguments>
void set(Table& table, Slot<Table, Result(Arguments...)> slot,
         std::type_identity_t<Result (*)(Arguments...)> function) {
  table.slots[slot.place] = reinterpret_cast<void*>(function);
}

/// A function that writes a member's size or items to its last arguments.
template <auto Member, typename Owner> OrtStatus* countOf(const Owner* owner, size_t* count) {
  *count = (owner->*Member).size();
  return nullptr;
}
template <auto Member, typename Owner, typename Item>
OrtStatus* itemsOf(const Owner* owner, const Item** items, size_t count) {
  std::copy_n((owner->*Member).begin(), count, items);
  return nullptr;
}
template <auto Member, typename Owner> OrtStatus* textOf(const Owner* owner, const char** text) {
  *text = (owner->*Member).c_str();
  return nullptr;
}

size_t sizeOf(ElementType type) { return type == ElementType::Int64 ? 8 : 4; }

std::unique_ptr<OrtValue> made(const std::vector<int64_t>& dims) {
  auto value = std::make_unique<OrtValue>();
  value->shape.dims = dims;
  value->bytes = sizeOf(value->shape.type);
  for (const int64_t dim : dims) value->bytes *= static_cast<size_t>(dim);
  value->memory.resize(value->bytes / sizeof(std::max_align_t) + 1);
  return value;
}

OrtStatus* readAttribute(const OrtOpAttr* attribute, AttributeType, void* data, size_t room,
                         size_t* size) {
  const bool isText = attribute->type == AttributeType::String;
  *size = attribute->content.size() + (isText ? behindTexts : 0);
  if (room < *size) return new OrtStatus{ErrorCode::InvalidArgument, "too little room"};
  std::memcpy(data, attribute->content.data(), attribute->content.size());
  if (isText) static_cast<char*>(data)[attribute->content.size()] = '\0';
  return nullptr;
}

OrtStatus* makeAttribute(const char* name, const void* data, int size, AttributeType type,
                         OrtOpAttr** out) {
  const size_t bytes = static_cast<size_t>(size) * (type == AttributeType::Int ? 8 : 1);
  *out = new OrtOpAttr{name, type, std::string(static_cast<const char*>(data), bytes)};
  return nullptr;
}

/// ONNX Runtime copies all of it; the names are what the tests look at.
OrtStatus* makeNode(const char* op, const char* domain, const char* name, const char* const*,
                    size_t, const char* const*, size_t, OrtOpAttr** attributes, size_t count,
                    OrtNode** out) {
  *out = new OrtNode{name, op, domain, {}, {}, {}};
  for (size_t i = 0; i < count; ++i) (*out)->attributes.push_back(new OrtOpAttr(*attributes[i]));
  return nullptr;
}

void setStatus() {
  set(api, CreateStatus, [](ErrorCode code, const char* message) -> OrtStatus* {
    return new OrtStatus{code, message};
  });
  set(api, GetErrorMessage, [](const OrtStatus* status) { return status->message.c_str(); });
  set(api, ReleaseStatus, [](OrtStatus* status) { delete status; });
  set(api, GetEpApi, []() -> const OrtEpApi* { return &epApi; });
  set(api, GetModelEditorApi, []() -> const OrtModelEditorApi* { return &editorApi; });
  set(api, Logger_LogMessage,
      [](const OrtLogger* logger, Severity, const char* message, const char*, int,
         const char*) -> OrtStatus* {
        const_cast<OrtLogger*>(logger)->lines.emplace_back(message);
        return nullptr;
      });
}

void setTypes() {
  using Info = OrtTensorTypeAndShapeInfo;
  set(api, GetOnnxTypeFromTypeInfo, [](const OrtTypeInfo* type, ValueKind* kind) -> OrtStatus* {
    *kind = type->kind;
    return nullptr;
  });
  set(api, CastTypeInfoToTensorInfo, [](const OrtTypeInfo* type, const Info** out) -> OrtStatus* {
    *out = &type->tensor;
    return nullptr;
  });
  set(api, GetTensorElementType, [](const Info* info, ElementType* type) -> OrtStatus* {
    *type = info->type;
    return nullptr;
  });
  set(api, GetDimensionsCount, countOf<&Info::dims, Info>);
  set(api, GetDimensions, [](const Info* info, int64_t* dims, size_t count) -> OrtStatus* {
    std::copy_n(info->dims.begin(), count, dims);
    return nullptr;
  });
  set(api, GetSymbolicDimensions, [](const Info* info, const char** names, size_t n) -> OrtStatus* {
    for (size_t i = 0; i < n; ++i) names[i] = i < info->names.size() ? info->names[i].c_str() : "";
    return nullptr;
  });
  set(api, TensorTypeAndShape_HasShape, [](const Info* info) { return info->isRanked; });
  set(api, ReleaseTensorTypeAndShapeInfo, [](Info* info) { delete info; });
}

void setValues() {
  set(api, GetValueInfoName, textOf<&OrtValueInfo::name, OrtValueInfo>);
  set(api, GetValueInfoTypeInfo, [](const OrtValueInfo* v, const OrtTypeInfo** out) -> OrtStatus* {
    *out = &v->type;
    return nullptr;
  });
  set(api, ValueInfo_IsFromOuterScope, [](const OrtValueInfo* value, bool* out) -> OrtStatus* {
    *out = value->isOuter;
    return nullptr;
  });
  set(api, ValueInfo_IsConstantInitializer, [](const OrtValueInfo* v, bool* out) -> OrtStatus* {
    *out = v->constant != nullptr;
    return nullptr;
  });
  set(api, ValueInfo_GetInitializerValue,
      [](const OrtValueInfo* value, const OrtValue** out) -> OrtStatus* {
        *out = value->constant;
        return nullptr;
      });
  set(api, GetTensorTypeAndShape,
      [](const OrtValue* value, OrtTensorTypeAndShapeInfo** out) -> OrtStatus* {
        *out = new OrtTensorTypeAndShapeInfo(value->shape);
        return nullptr;
      });
  set(api, GetTensorSizeInBytes, [](const OrtValue* value, size_t* size) -> OrtStatus* {
    *size = value->bytes;
    return nullptr;
  });
  set(api, GetTensorData, [](const OrtValue* value, const void** data) -> OrtStatus* {
    *data = value->memory.data();
    return nullptr;
  });
  set(api, GetTensorMutableData, [](OrtValue* value, void** data) -> OrtStatus* {
    *data = value->memory.data();
    return nullptr;
  });
  set(api, ReleaseValue, [](OrtValue* value) { delete value; });
}

void setGraphs() {
  set(api, Graph_GetModelPath, textOf<&OrtGraph::path, OrtGraph>);
  set(api, Graph_GetOnnxIRVersion, [](const OrtGraph*, int64_t* version) -> OrtStatus* {
    *version = 8;
    return nullptr;
  });
  set(api, Graph_GetNumOperatorSets, [](const OrtGraph*, size_t* count) -> OrtStatus* {
    *count = 1;
    return nullptr;
  });
  set(api, Graph_GetOperatorSets,
      [](const OrtGraph*, const char** domains, int64_t* versions, size_t) -> OrtStatus* {
        domains[0] = "";
        versions[0] = 17;
        return nullptr;
      });
  set(api, Graph_GetNumInputs, countOf<&OrtGraph::inputs, OrtGraph>);
  set(api, Graph_GetInputs, itemsOf<&OrtGraph::inputs, OrtGraph, OrtValueInfo>);
  set(api, Graph_GetNumOutputs, countOf<&OrtGraph::outputs, OrtGraph>);
  set(api, Graph_GetOutputs, itemsOf<&OrtGraph::outputs, OrtGraph, OrtValueInfo>);
  set(api, Graph_GetNumInitializers, countOf<&OrtGraph::initializers, OrtGraph>);
  set(api, Graph_GetInitializers, itemsOf<&OrtGraph::initializers, OrtGraph, OrtValueInfo>);
  set(api, Graph_GetNumNodes, countOf<&OrtGraph::nodes, OrtGraph>);
  set(api, Graph_GetNodes, itemsOf<&OrtGraph::nodes, OrtGraph, OrtNode>);
  set(api, Graph_GetParentNode, [](const OrtGraph*, const OrtNode** node) -> OrtStatus* {
    *node = nullptr;
    return nullptr;
  });
}

OrtStatus* noneOf(const OrtNode*, size_t* count) {
  *count = 0;
  return nullptr;
}

void setNodes() {
  set(api, Node_GetName, textOf<&OrtNode::name, OrtNode>);
  set(api, Node_GetOperatorType, textOf<&OrtNode::op, OrtNode>);
  set(api, Node_GetDomain, textOf<&OrtNode::domain, OrtNode>);
  set(api, Node_GetNumInputs, countOf<&OrtNode::inputs, OrtNode>);
  set(api, Node_GetInputs, itemsOf<&OrtNode::inputs, OrtNode, OrtValueInfo>);
  set(api, Node_GetNumOutputs, countOf<&OrtNode::outputs, OrtNode>);
  set(api, Node_GetOutputs, itemsOf<&OrtNode::outputs, OrtNode, OrtValueInfo>);
  set(api, Node_GetNumImplicitInputs, noneOf);
  set(api, Node_GetNumSubgraphs, noneOf);
  set(api, Node_GetNumAttributes, countOf<&OrtNode::attributes, OrtNode>);
  set(api, Node_GetAttributes, itemsOf<&OrtNode::attributes, OrtNode, OrtOpAttr>);
  set(api, OpAttr_GetName, textOf<&OrtOpAttr::name, OrtOpAttr>);
  set(api, OpAttr_GetType, [](const OrtOpAttr* attribute, AttributeType* type) -> OrtStatus* {
    *type = attribute->type;
    return nullptr;
  });
  set(api, ReadOpAttr, readAttribute);
  set(api, CreateOpAttr, makeAttribute);
  set(api, ReleaseOpAttr, [](OrtOpAttr* attribute) { delete attribute; });
  set(editorApi, CreateNode, makeNode);
}

void setSessions() {
  set(api, CreateKeyValuePairs, [](OrtKeyValuePairs** out) { *out = new OrtKeyValuePairs; });
  set(api, AddKeyValuePair, [](OrtKeyValuePairs* pairs, const char* key, const char* value) {
    pairs->pairs[key] = value;
  });
  set(api, GetKeyValuePairs,
      [](const OrtKeyValuePairs* pairs, const char* const** keys, const char* const** values,
         size_t* count) {
        *keys = pairs->keys.data();
        *values = pairs->values.data();
        *count = pairs->keys.size();
      });
  set(api, ReleaseKeyValuePairs, [](OrtKeyValuePairs* pairs) { delete pairs; });
  set(api, GetSessionOptionsConfigEntries,
      [](const OrtSessionOptions* session, OrtKeyValuePairs** out) -> OrtStatus* {
        *out = new OrtKeyValuePairs{session->configuration, {}, {}};
        for (const auto& [key, value] : (*out)->pairs) {
          (*out)->keys.push_back(key.c_str());
          (*out)->values.push_back(value.c_str());
        }
        return nullptr;
      });
  set(api, HardwareDevice_Type, [](const OrtHardwareDevice* device) { return device->type; });
  set(epApi, CreateEpDevice,
      [](OrtEpFactory*, const OrtHardwareDevice*, const OrtKeyValuePairs* metadata,
         const OrtKeyValuePairs*, OrtEpDevice** out) -> OrtStatus* {
        *out = new OrtEpDevice{metadata->pairs};
        return nullptr;
      });
  set(epApi, EpGraphSupportInfo_AddNodesToFuse,
      [](OrtEpGraphSupportInfo* support, const OrtNode* const* nodes, size_t count,
         const OrtNodeFusionOptions*) -> OrtStatus* {
        support->groups.emplace_back(nodes, nodes + count);
        return nullptr;
      });
}

void setRuns() {
  set(api, KernelContext_GetInput,
      [](const OrtKernelContext* context, size_t index, const OrtValue** out) -> OrtStatus* {
        *out = index < context->inputs.size() ? context->inputs[index] : nullptr;
        return nullptr;
      });
  set(api, KernelContext_GetOutput,
      [](OrtKernelContext* context, size_t index, const int64_t* dims, size_t rank,
         OrtValue** out) -> OrtStatus* {
        context->outputs.resize(std::max(context->outputs.size(), index + 1));
        context->outputs[index] = made(std::vector<int64_t>(dims, dims + rank));
        *out = context->outputs[index].get();
        return nullptr;
      });
}

void setProfiles() {
  set(epApi, CreateProfilingEvent,
      [](EventCategory, int32_t, int32_t, const char* name, int64_t timestamp, int64_t duration,
         const char* const*, const char* const*, size_t, OrtProfilingEvent** out) -> OrtStatus* {
        *out = new OrtProfilingEvent{name, timestamp, duration};
        return nullptr;
      });
  set(epApi, ReleaseProfilingEvent, [](OrtProfilingEvent* event) { delete event; });
  set(epApi, ProfilingEventsContainer_AddEvents,
      [](OrtProfilingEventsContainer* container, const OrtProfilingEvent* const* events,
         size_t count) -> OrtStatus* {
        for (size_t i = 0; i < count; ++i) container->events.push_back(*events[i]);
        return nullptr;
      });
}

} // namespace

FakeRuntime::FakeRuntime(uint32_t newestApi, bool countsZeros) {
  newestVersion = newestApi;
  behindTexts = countsZeros ? 1 : 0;
  std::fill(std::begin(api.slots), std::end(api.slots), reinterpret_cast<void*>(notThere));
  setStatus();
  setTypes();
  setValues();
  setGraphs();
  setNodes();
  setSessions();
  setRuns();
  setProfiles();
  base_.GetApi = [](uint32_t version) -> const OrtApi* {
    return version <= newestVersion ? &api : nullptr;
  };
  base_.GetVersionString = []() -> const char* {
    static std::string version;
    version = "1." + std::to_string(newestVersion) + ".0";
    return version.c_str();
  };
}

const OrtOpAttr* FakeRuntime::attribute(const std::string& name, const std::string& text) {
  return &attributes_.emplace_back(OrtOpAttr{name, AttributeType::String, text});
}

const OrtOpAttr* FakeRuntime::attribute(const std::string& name, int64_t number) {
  const std::string content(reinterpret_cast<const char*>(&number), sizeof number);
  return &attributes_.emplace_back(OrtOpAttr{name, AttributeType::Int, content});
}

const OrtValueInfo* FakeRuntime::value(const std::string& name, const std::vector<int64_t>& dims,
                                       ElementType type) {
  OrtValueInfo& value = values_.emplace_back();
  value.name = name;
  value.type.tensor.dims = dims;
  value.type.tensor.type = type;
  for (const int64_t dim : dims) value.type.tensor.names.push_back(dim < 0 ? "N" : "");
  return &value;
}

const OrtValueInfo* FakeRuntime::outer(const std::string& name, const std::vector<int64_t>& dims) {
  value(name, dims);
  values_.back().isOuter = true;
  return &values_.back();
}

const OrtValueInfo* FakeRuntime::constant(const std::string& name,
                                          const std::vector<float>& content) {
  constants_.push_back(tensor({static_cast<int64_t>(content.size())}, content));
  value(name, constants_.back()->shape.dims);
  values_.back().constant = constants_.back().get();
  return &values_.back();
}

const OrtNode* FakeRuntime::node(const FakeNode& node) {
  const std::string name = node.op + "_" + std::to_string(nodes_.size());
  return &nodes_.emplace_back(
      OrtNode{name, node.op, node.domain, node.inputs, node.outputs, node.attributes});
}

std::unique_ptr<OrtValue> FakeRuntime::tensor(const std::vector<int64_t>& dims,
                                              const std::vector<float>& content) {
  auto value = made(dims);
  std::memcpy(value->memory.data(), content.data(), value->bytes);
  return value;
}

std::vector<float> FakeRuntime::floatsOf(const OrtValue& value) {
  std::vector<float> floats(value.bytes / sizeof(float));
  std::memcpy(floats.data(), value.memory.data(), value.bytes);
  return floats;
}

} // namespace candela::ort
