/// As much of ONNX Runtime as a provider sees of it: tables of functions over graphs of a few
/// nodes.
#ifndef CANDELA_TESTS_ONNXRUNTIME_FAKE_ONNXRUNTIME_H
#define CANDELA_TESTS_ONNXRUNTIME_FAKE_ONNXRUNTIME_H

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "integrations/onnxruntime/ort_abi.h"

namespace candela::ort::abi {

struct OrtStatus {
  ErrorCode code;
  std::string message;
};
struct OrtLogger {
  std::vector<std::string> lines;
};
struct OrtTensorTypeAndShapeInfo {
  ElementType type = ElementType::Float;
  std::vector<int64_t> dims; ///< -1: open
  std::vector<std::string> names;
  bool isRanked = true;
};
struct OrtTypeInfo {
  ValueKind kind = ValueKind::Tensor;
  OrtTensorTypeAndShapeInfo tensor;
};
struct OrtValue {
  OrtTensorTypeAndShapeInfo shape;
  std::vector<std::max_align_t> memory;
  size_t bytes = 0;
};
struct OrtValueInfo {
  std::string name;
  OrtTypeInfo type;
  const OrtValue* constant = nullptr;
  bool isOuter = false;
};
struct OrtOpAttr {
  std::string name;
  AttributeType type;
  std::string content;
};
struct OrtNode {
  std::string name, op, domain;
  std::vector<const OrtValueInfo*> inputs, outputs;
  std::vector<const OrtOpAttr*> attributes;
};
struct OrtGraph {
  std::vector<const OrtValueInfo*> inputs, outputs, initializers;
  std::vector<const OrtNode*> nodes;
  std::string path;
};
struct OrtKeyValuePairs {
  std::map<std::string, std::string> pairs;
  std::vector<const char*> keys, values;
};
struct OrtSessionOptions {
  std::map<std::string, std::string> configuration;
};
struct OrtHardwareDevice {
  HardwareType type;
};
struct OrtEpDevice {
  std::map<std::string, std::string> metadata;
};
struct OrtEpGraphSupportInfo {
  std::vector<std::vector<const OrtNode*>> groups;
};
struct OrtProfilingEvent {
  std::string name;
  int64_t timestamp, duration; ///< microseconds
};
struct OrtProfilingEventsContainer {
  std::vector<OrtProfilingEvent> events;
};
struct OrtKernelContext {
  std::vector<const OrtValue*> inputs;
  std::vector<std::unique_ptr<OrtValue>> outputs;
};

} // namespace candela::ort::abi

namespace candela::ort {

/// What a node is, as a test says it.
struct FakeNode {
  std::string op;
  std::vector<const abi::OrtValueInfo*> inputs, outputs;
  std::vector<const abi::OrtOpAttr*> attributes = {};
  std::string domain = "";
};

/// Owns the objects of a test. Texts of attributes end with a zero, or not, as releases differ.
class FakeRuntime {
public:
  explicit FakeRuntime(uint32_t newestApi = 24, bool countsZeros = true);

  const abi::OrtApiBase& base() const { return base_; }
  const abi::OrtOpAttr* attribute(const std::string& name, const std::string& text);
  const abi::OrtOpAttr* attribute(const std::string& name, int64_t number);
  const abi::OrtValueInfo* value(const std::string& name, const std::vector<int64_t>& dims,
                                 abi::ElementType type = abi::ElementType::Float);
  /// Of a graph around the one that reads it.
  const abi::OrtValueInfo* outer(const std::string& name, const std::vector<int64_t>& dims);
  const abi::OrtValueInfo* constant(const std::string& name, const std::vector<float>& content);
  const abi::OrtNode* node(const FakeNode& node);
  static std::unique_ptr<abi::OrtValue> tensor(const std::vector<int64_t>& dims,
                                               const std::vector<float>& content);
  static std::vector<float> floatsOf(const abi::OrtValue& value);

private:
  abi::OrtApiBase base_;
  std::deque<abi::OrtOpAttr> attributes_;
  std::deque<abi::OrtValueInfo> values_;
  std::deque<abi::OrtNode> nodes_;
  std::vector<std::unique_ptr<abi::OrtValue>> constants_;
};

} // namespace candela::ort

#endif
