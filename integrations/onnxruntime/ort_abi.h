/// What this library uses of ONNX Runtime's C API for plugin execution providers, declared here:
/// the build needs nothing of ONNX Runtime. A table of theirs is an array of functions to which
/// releases only append, so a slot is its place and its type.
///
/// Source of the places and layouts: include/onnxruntime/core/session/onnxruntime_c_api.h and
/// onnxruntime_ep_c_api.h of ONNX Runtime 1.24 and later; tests/nightly/onnxruntime_slots.py holds
/// each of them to such headers.
#ifndef CANDELA_INTEGRATIONS_ONNXRUNTIME_ORT_ABI_H
#define CANDELA_INTEGRATIONS_ONNXRUNTIME_ORT_ABI_H

#include <cstddef>
#include <cstdint>

namespace candela::ort::abi {

/// The oldest API that has what is used, of release 1.23.
constexpr uint32_t kApiVersion = 23;
/// The API that says whether a value has a rank, of release 1.24.
constexpr uint32_t kApiVersionOfRanks = 24;
/// The API that asks a provider for what its runs took, of release 1.25.
constexpr uint32_t kApiVersionOfProfiles = 25;
/// The API that every release has, for the message of a refusal.
constexpr uint32_t kFirstApiVersion = 1;

// --- What ONNX Runtime owns and only it looks into
// ------------------------------------------------

struct OrtStatus;
struct OrtLogger;
struct OrtGraph;
struct OrtNode;
struct OrtValueInfo;
struct OrtValue;
struct OrtOpAttr;
struct OrtTypeInfo;
struct OrtTensorTypeAndShapeInfo;
struct OrtSessionOptions;
struct OrtKeyValuePairs;
struct OrtHardwareDevice;
struct OrtEpDevice;
struct OrtEpGraphSupportInfo;
struct OrtNodeComputeContext;
struct OrtKernelContext;
struct OrtRunOptions;
struct OrtMemoryInfo;
struct OrtMemoryDevice;
struct OrtAllocator;
struct OrtSyncStreamImpl;
struct OrtDataTransferImpl;
struct OrtKernelRegistry;
struct OrtProfilingEvent;
struct OrtProfilingEventsContainer;

// --- Numbers
// --------------------------------------------------------------------------------------

enum class ErrorCode : int32_t {
  Fail = 1,
  InvalidArgument = 2,
  NoSuchFile = 3,
  RuntimeException = 6,
  NotImplemented = 9,
  InvalidGraph = 10,
  EpFail = 11,
  NotFound = 14,
};
enum class Severity : int32_t { Verbose = 0, Info = 1, Warning = 2, Error = 3 };
enum class ValueKind : int32_t { Unknown = 0, Tensor = 1 };
/// The numbers of TensorProto.DataType, as far as both name a type.
enum class ElementType : int32_t {
  Undefined = 0,
  Float = 1,
  Uint8 = 2,
  Int8 = 3,
  Uint16 = 4,
  Int16 = 5,
  Int32 = 6,
  Int64 = 7,
  String = 8,
  Bool = 9,
  Float16 = 10,
  Double = 11,
  Uint32 = 12,
  Uint64 = 13,
  Bfloat16 = 16,
  LastOfOneByteOrMore = 20, ///< the eight-bit floats end here; packed types follow
};
enum class AttributeType : int32_t {
  Undefined = 0,
  Int = 1,
  Ints = 2,
  Float = 3,
  Floats = 4,
  String = 5,
  Strings = 6,
  Graph = 7,
  Tensor = 8,
};
enum class EventCategory : int32_t { Node = 1, Kernel = 2 };
enum class HardwareType : int32_t { Cpu = 0, Gpu = 1, Npu = 2 };
enum class Compatibility : int32_t { NotApplicable = 0, Optimal = 1, Unsupported = 3 };

// --- Tables that this library calls
// ---------------------------------------------------------------

struct OrtApi;
struct OrtEpApi;
struct OrtModelEditorApi;

struct OrtApiBase {
  const OrtApi* (*GetApi)(uint32_t version); ///< nullptr: a release without that version
  const char* (*GetVersionString)();
};

/// One function of a table: its place, counted in functions.
template <typename Table, typename Function> struct Slot {
  uint32_t place;
};

template <typename Table, typename Result, typename... Arguments>
auto function(const Table* table, Slot<Table, Result(Arguments...)> slot) {
  using Pointer = Result (*)(Arguments...);
  return reinterpret_cast<const Pointer*>(table)[slot.place];
}

template <typename Function> using ApiSlot = Slot<OrtApi, Function>;
template <typename Function> using EpApiSlot = Slot<OrtEpApi, Function>;
template <typename Function> using EditorSlot = Slot<OrtModelEditorApi, Function>;

// clang-format off: one slot a line, which the nightly check reads
constexpr ApiSlot<OrtStatus*(ErrorCode, const char*)> CreateStatus{0};
constexpr ApiSlot<const char*(const OrtStatus*)> GetErrorMessage{2};
constexpr ApiSlot<OrtStatus*(const OrtTypeInfo*, const OrtTensorTypeAndShapeInfo**)> CastTypeInfoToTensorInfo{55};
constexpr ApiSlot<OrtStatus*(const OrtTypeInfo*, ValueKind*)> GetOnnxTypeFromTypeInfo{56};
constexpr ApiSlot<OrtStatus*(const OrtTensorTypeAndShapeInfo*, ElementType*)> GetTensorElementType{60};
constexpr ApiSlot<OrtStatus*(const OrtTensorTypeAndShapeInfo*, size_t*)> GetDimensionsCount{61};
constexpr ApiSlot<OrtStatus*(const OrtTensorTypeAndShapeInfo*, int64_t*, size_t)> GetDimensions{62};
constexpr ApiSlot<OrtStatus*(const OrtTensorTypeAndShapeInfo*, const char**, size_t)> GetSymbolicDimensions{63};
constexpr ApiSlot<OrtStatus*(const OrtValue*, OrtTensorTypeAndShapeInfo**)> GetTensorTypeAndShape{65};
constexpr ApiSlot<OrtStatus*(OrtValue*, void**)> GetTensorMutableData{51};
constexpr ApiSlot<OrtStatus*(const OrtKernelContext*, size_t, const OrtValue**)> KernelContext_GetInput{90};
constexpr ApiSlot<OrtStatus*(OrtKernelContext*, size_t, const int64_t*, size_t, OrtValue**)> KernelContext_GetOutput{91};
constexpr ApiSlot<void(OrtStatus*)> ReleaseStatus{93};
constexpr ApiSlot<void(OrtValue*)> ReleaseValue{96};
constexpr ApiSlot<void(OrtTensorTypeAndShapeInfo*)> ReleaseTensorTypeAndShapeInfo{99};
constexpr ApiSlot<OrtStatus*(const char*, const void*, int, AttributeType, OrtOpAttr**)> CreateOpAttr{211};
constexpr ApiSlot<void(OrtOpAttr*)> ReleaseOpAttr{212};
constexpr ApiSlot<OrtStatus*(const OrtLogger*, Severity, const char*, const char*, int, const char*)> Logger_LogMessage{247};
constexpr ApiSlot<OrtStatus*(const OrtOpAttr*, AttributeType, void*, size_t, size_t*)> ReadOpAttr{272};
constexpr ApiSlot<OrtStatus*(const OrtValueInfo*, const char**)> GetValueInfoName{289};
constexpr ApiSlot<OrtStatus*(const OrtValueInfo*, const OrtTypeInfo**)> GetValueInfoTypeInfo{290};
constexpr ApiSlot<const OrtModelEditorApi*()> GetModelEditorApi{291};
constexpr ApiSlot<void(OrtKeyValuePairs**)> CreateKeyValuePairs{295};
constexpr ApiSlot<void(OrtKeyValuePairs*, const char*, const char*)> AddKeyValuePair{296};
constexpr ApiSlot<void(const OrtKeyValuePairs*, const char* const**, const char* const**, size_t*)> GetKeyValuePairs{298};
constexpr ApiSlot<void(OrtKeyValuePairs*)> ReleaseKeyValuePairs{300};
constexpr ApiSlot<HardwareType(const OrtHardwareDevice*)> HardwareDevice_Type{307};
constexpr ApiSlot<const OrtEpApi*()> GetEpApi{317};
constexpr ApiSlot<OrtStatus*(const OrtValue*, size_t*)> GetTensorSizeInBytes{318};
constexpr ApiSlot<OrtStatus*(const OrtValueInfo*, const OrtValue**)> ValueInfo_GetInitializerValue{326};
constexpr ApiSlot<OrtStatus*(const OrtValueInfo*, bool*)> ValueInfo_IsConstantInitializer{331};
constexpr ApiSlot<OrtStatus*(const OrtValueInfo*, bool*)> ValueInfo_IsFromOuterScope{332};
constexpr ApiSlot<OrtStatus*(const OrtGraph*, const char**)> Graph_GetModelPath{334};
constexpr ApiSlot<OrtStatus*(const OrtGraph*, int64_t*)> Graph_GetOnnxIRVersion{335};
constexpr ApiSlot<OrtStatus*(const OrtGraph*, size_t*)> Graph_GetNumOperatorSets{336};
constexpr ApiSlot<OrtStatus*(const OrtGraph*, const char**, int64_t*, size_t)> Graph_GetOperatorSets{337};
constexpr ApiSlot<OrtStatus*(const OrtGraph*, size_t*)> Graph_GetNumInputs{338};
constexpr ApiSlot<OrtStatus*(const OrtGraph*, const OrtValueInfo**, size_t)> Graph_GetInputs{339};
constexpr ApiSlot<OrtStatus*(const OrtGraph*, size_t*)> Graph_GetNumOutputs{340};
constexpr ApiSlot<OrtStatus*(const OrtGraph*, const OrtValueInfo**, size_t)> Graph_GetOutputs{341};
constexpr ApiSlot<OrtStatus*(const OrtGraph*, size_t*)> Graph_GetNumInitializers{342};
constexpr ApiSlot<OrtStatus*(const OrtGraph*, const OrtValueInfo**, size_t)> Graph_GetInitializers{343};
constexpr ApiSlot<OrtStatus*(const OrtGraph*, size_t*)> Graph_GetNumNodes{344};
constexpr ApiSlot<OrtStatus*(const OrtGraph*, const OrtNode**, size_t)> Graph_GetNodes{345};
constexpr ApiSlot<OrtStatus*(const OrtGraph*, const OrtNode**)> Graph_GetParentNode{346};
constexpr ApiSlot<OrtStatus*(const OrtNode*, const char**)> Node_GetName{349};
constexpr ApiSlot<OrtStatus*(const OrtNode*, const char**)> Node_GetOperatorType{350};
constexpr ApiSlot<OrtStatus*(const OrtNode*, const char**)> Node_GetDomain{351};
constexpr ApiSlot<OrtStatus*(const OrtNode*, size_t*)> Node_GetNumInputs{353};
constexpr ApiSlot<OrtStatus*(const OrtNode*, const OrtValueInfo**, size_t)> Node_GetInputs{354};
constexpr ApiSlot<OrtStatus*(const OrtNode*, size_t*)> Node_GetNumOutputs{355};
constexpr ApiSlot<OrtStatus*(const OrtNode*, const OrtValueInfo**, size_t)> Node_GetOutputs{356};
constexpr ApiSlot<OrtStatus*(const OrtNode*, size_t*)> Node_GetNumImplicitInputs{357};
constexpr ApiSlot<OrtStatus*(const OrtNode*, const OrtValueInfo**, size_t)> Node_GetImplicitInputs{358};
constexpr ApiSlot<OrtStatus*(const OrtNode*, size_t*)> Node_GetNumAttributes{359};
constexpr ApiSlot<OrtStatus*(const OrtNode*, const OrtOpAttr**, size_t)> Node_GetAttributes{360};
constexpr ApiSlot<OrtStatus*(const OrtOpAttr*, OrtValue**)> OpAttr_GetTensorAttributeAsOrtValue{362};
constexpr ApiSlot<OrtStatus*(const OrtOpAttr*, AttributeType*)> OpAttr_GetType{363};
constexpr ApiSlot<OrtStatus*(const OrtOpAttr*, const char**)> OpAttr_GetName{364};
constexpr ApiSlot<OrtStatus*(const OrtNode*, size_t*)> Node_GetNumSubgraphs{365};
constexpr ApiSlot<OrtStatus*(const OrtNode*, const OrtGraph**, size_t, const char**)> Node_GetSubgraphs{366};
constexpr ApiSlot<OrtStatus*(const OrtNode*, const OrtGraph**)> Node_GetGraph{367};
constexpr ApiSlot<OrtStatus*(const OrtValue*, const void**)> GetTensorData{378};
constexpr ApiSlot<OrtStatus*(const OrtSessionOptions*, OrtKeyValuePairs**)> GetSessionOptionsConfigEntries{379};
constexpr ApiSlot<bool(const OrtTensorTypeAndShapeInfo*)> TensorTypeAndShape_HasShape{390};

constexpr EditorSlot<OrtStatus*(const char*, const char*, const char*, const char* const*, size_t, const char* const*, size_t, OrtOpAttr**, size_t, OrtNode**)> CreateNode{6};
// clang-format on

// --- Records that this library fills
// -------------------------------------------------------------- `ort_version_supported` says how
// far ONNX Runtime may look: members of later versions are not here.

struct OrtNodeFusionOptions {
  uint32_t ort_version_supported;
  bool drop_constant_initializers; ///< constants are kept by the provider: they are no inputs
};

// clang-format off
constexpr EpApiSlot<OrtStatus*(struct OrtEpFactory*, const OrtHardwareDevice*, const OrtKeyValuePairs*, const OrtKeyValuePairs*, OrtEpDevice**)> CreateEpDevice{0};
constexpr EpApiSlot<OrtStatus*(OrtEpGraphSupportInfo*, const OrtNode* const*, size_t, const OrtNodeFusionOptions*)> EpGraphSupportInfo_AddNodesToFuse{2};
constexpr EpApiSlot<OrtStatus*(EventCategory, int32_t, int32_t, const char*, int64_t, int64_t, const char* const*, const char* const*, size_t, OrtProfilingEvent**)> CreateProfilingEvent{65};
constexpr EpApiSlot<void(OrtProfilingEvent*)> ReleaseProfilingEvent{66};
constexpr EpApiSlot<OrtStatus*(OrtProfilingEventsContainer*, const OrtProfilingEvent* const*, size_t)> ProfilingEventsContainer_AddEvents{72};
// clang-format on

struct OrtNodeComputeInfo {
  uint32_t ort_version_supported;
  OrtStatus* (*CreateState)(OrtNodeComputeInfo*, OrtNodeComputeContext*, void** state);
  OrtStatus* (*Compute)(OrtNodeComputeInfo*, void* state, OrtKernelContext*);
  void (*ReleaseState)(OrtNodeComputeInfo*, void* state);
};

struct OrtEpProfilerImpl {
  uint32_t ort_version_supported;
  void (*Release)(OrtEpProfilerImpl*);
  OrtStatus* (*StartProfiling)(OrtEpProfilerImpl*, int64_t offset_ns);
  OrtStatus* (*StartEvent)(OrtEpProfilerImpl*, uint64_t id);
  OrtStatus* (*StopEvent)(OrtEpProfilerImpl*, uint64_t id, const OrtProfilingEvent*);
  OrtStatus* (*EndProfiling)(OrtEpProfilerImpl*, OrtProfilingEventsContainer*);
};

struct OrtEp {
  uint32_t ort_version_supported;
  const char* (*GetName)(const OrtEp*);
  OrtStatus* (*GetCapability)(OrtEp*, const OrtGraph*, OrtEpGraphSupportInfo*);
  OrtStatus* (*Compile)(OrtEp*, const OrtGraph** graphs, const OrtNode** fused, size_t count,
                        OrtNodeComputeInfo** infos, OrtNode** contexts);
  void (*ReleaseNodeComputeInfos)(OrtEp*, OrtNodeComputeInfo**, size_t count);
  OrtStatus* (*GetPreferredDataLayout)(OrtEp*, int32_t*);
  OrtStatus* (*ShouldConvertDataLayoutForOp)(OrtEp*, const char*, const char*, int32_t, int*);
  OrtStatus* (*SetDynamicOptions)(OrtEp*, const char* const*, const char* const*, size_t);
  OrtStatus* (*OnRunStart)(OrtEp*, const OrtRunOptions*);
  OrtStatus* (*OnRunEnd)(OrtEp*, const OrtRunOptions*, bool);
  OrtStatus* (*CreateAllocator)(OrtEp*, const OrtMemoryInfo*, OrtAllocator**);
  OrtStatus* (*CreateSyncStreamForDevice)(OrtEp*, const OrtMemoryDevice*, OrtSyncStreamImpl**);
  const char* (*GetCompiledModelCompatibilityInfo)(OrtEp*, const OrtGraph*);
  OrtStatus* (*GetKernelRegistry)(OrtEp*, const OrtKernelRegistry**);
  OrtStatus* (*IsConcurrentRunSupported)(OrtEp*, bool*);
  OrtStatus* (*Sync)(OrtEp*);
  OrtStatus* (*CreateProfiler)(OrtEp*, OrtEpProfilerImpl**);
};

struct OrtEpFactory {
  uint32_t ort_version_supported;
  const char* (*GetName)(const OrtEpFactory*);
  const char* (*GetVendor)(const OrtEpFactory*);
  OrtStatus* (*GetSupportedDevices)(OrtEpFactory*, const OrtHardwareDevice* const*, size_t count,
                                    OrtEpDevice** devices, size_t room, size_t* made);
  OrtStatus* (*CreateEp)(OrtEpFactory*, const OrtHardwareDevice* const*,
                         const OrtKeyValuePairs* const*, size_t count, const OrtSessionOptions*,
                         const OrtLogger*, OrtEp**);
  void (*ReleaseEp)(OrtEpFactory*, OrtEp*);
  uint32_t (*GetVendorId)(const OrtEpFactory*);
  const char* (*GetVersion)(const OrtEpFactory*);
  OrtStatus* (*ValidateCompiledModelCompatibilityInfo)(OrtEpFactory*,
                                                       const OrtHardwareDevice* const*, size_t,
                                                       const char*, Compatibility*);
  OrtStatus* (*CreateAllocator)(OrtEpFactory*, const OrtMemoryInfo*, const OrtKeyValuePairs*,
                                OrtAllocator**);
  void (*ReleaseAllocator)(OrtEpFactory*, OrtAllocator*);
  OrtStatus* (*CreateDataTransfer)(OrtEpFactory*, OrtDataTransferImpl**);
  bool (*IsStreamAware)(const OrtEpFactory*);
  OrtStatus* (*CreateSyncStreamForDevice)(OrtEpFactory*, const OrtMemoryDevice*,
                                          const OrtKeyValuePairs*, OrtSyncStreamImpl**);
};

} // namespace candela::ort::abi

#endif
