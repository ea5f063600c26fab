// ONNX's own operator tests, as the package libonnx-testdata brings them: each is a model with
// inputs and the outputs that they give. Every model whose operators we know must import and
// compute those outputs in the reference.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <set>

#include "core/import/import.h"
#include "tests/unit/import/tensor_check.h"

namespace candela::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolder = "/usr/share/libonnx-testdata/data/node";

/// What these models ask for is none of ours, though their operators are.
const std::map<std::string, std::string> kExpectedRefusals = {
    {"test_training_dropout", "random numbers"},
    {"test_training_dropout_default", "random numbers"},
    {"test_training_dropout_default_mask", "random numbers"},
    {"test_training_dropout_mask", "random numbers"},
    {"test_cast_FLOAT_to_STRING", "STRING"},
    {"test_cast_STRING_to_FLOAT", "STRING"},
    {"test_castlike_FLOAT_to_STRING", "STRING"},
    {"test_castlike_FLOAT_to_STRING_expanded", "STRING"},
    {"test_castlike_STRING_to_FLOAT", "STRING"},
    {"test_castlike_STRING_to_FLOAT_expanded", "STRING"},
    {"test_identity_opt", "optional"},
    {"test_identity_sequence", "sequence"},
};

/// Data files that contradict their model or the standard: what differs.
const std::map<std::string, std::string> kWrongData = {
    {"test_cast_FLOAT_to_BFLOAT16", "element 1 is 0.48046875, expected 0.478515625"}, // cut off, not rounded
    {"test_castlike_BFLOAT16_to_FLOAT", "'like' is f32[1], expected f32[3,4]"},
    {"test_castlike_BFLOAT16_to_FLOAT_expanded", "'like' is f32[1], expected f32[3,4]"},
    {"test_castlike_FLOAT_to_BFLOAT16", "'like' is bf16[1], expected bf16[3,4]"},
    {"test_castlike_FLOAT_to_BFLOAT16_expanded", "'like' is bf16[1], expected bf16[3,4]"},
};

std::vector<std::string> folders() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kFolder))
    if (fs::exists(entry.path() / "model.onnx")) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

bool usesOnlyKnownOperators(const onnx_io::Model& model) {
  static const auto known = import::supportedOperators();
  return std::all_of(model.graph.nodes.begin(), model.graph.nodes.end(), [](const onnx_io::Node& node) {
    return std::binary_search(known.begin(), known.end(), std::pair(node.domain, node.opType));
  });
}

std::string dataFile(const std::string& name, const char* kind, size_t index) {
  return fmt::format("{}/{}/test_data_set_0/{}_{}.pb", kFolder, name, kind, index);
}

/// Inputs that nodes take as shapes, axes or the like: values that the Graph needs while it is
/// built.
std::set<std::string> shapeInputs(const onnx_io::Model& model) {
  const std::map<std::string, std::set<size_t>> positions = {
      {"Clip", {1, 2}},        {"ConstantOfShape", {0}}, {"Dropout", {1, 2}}, {"Expand", {1}},
      {"Pad", {1, 2, 3}},      {"Range", {0, 1, 2}},     {"ReduceMax", {1}},  {"ReduceMean", {1}},
      {"ReduceMin", {1}},      {"ReduceProd", {1}},      {"ReduceSum", {1}},  {"Reshape", {1}},
      {"Slice", {1, 2, 3, 4}}, {"Squeeze", {1}},         {"TopK", {1}},       {"Unsqueeze", {1}}};
  std::set<std::string> names;
  for (const onnx_io::Node& node : model.graph.nodes)
    if (const auto found = positions.find(node.opType); found != positions.end())
      for (size_t position : found->second)
        if (position < node.inputs.size()) names.insert(node.inputs[position]);
  return names;
}

/// The data files hold bf16 as u16.
Result<Tensor> readData(const std::string& path, const onnx_io::ValueInfo& info) {
  CDL_ASSIGN(Tensor tensor, onnx_io::readTensor(path));
  if (info.elem == Elem::bf16_ && tensor.elem == Elem::u16_) tensor.elem = Elem::bf16_;
  return tensor;
}

/// Empty when the model computes what its files say.
std::string runModel(const std::string& name, const onnx_io::Model& model) {
  import::ImportOptions options;
  std::vector<Tensor> inputs;
  const auto frozen = shapeInputs(model);
  for (size_t i = 0; i < model.graph.inputs.size(); ++i) {
    const onnx_io::ValueInfo& info = model.graph.inputs[i];
    if (info.elem == Elem::none) return import::importModel(model).status().message();
    auto tensor = readData(dataFile(name, "input", i), info);
    if (!tensor) return tensor.status().message();
    if (frozen.count(info.name)) {
      options.frozen.emplace(info.name, *tensor);
      continue;
    }
    if (std::any_of(info.dims.begin(), info.dims.end(), [](const onnx_io::Dim& dim) { return dim.value < 0; }))
      options.shapes[info.name] = tensor->dims;
    inputs.push_back(*tensor);
  }
  const auto graph = import::importModel(model, options);
  if (!graph) return graph.status().message();
  if (const Status status = graph::verify(*graph); !status) return status.message();
  const auto outputs = reference::run(*graph, inputs);
  if (!outputs) return outputs.status().message();
  for (size_t i = 0; i < outputs->size(); ++i) {
    const auto want = readData(dataFile(name, "output", i), model.graph.outputs[i]);
    if (!want) return want.status().message();
    if (const std::string text = difference((*outputs)[i], *want); !text.empty())
      return fmt::format("output {}: {}", model.graph.outputs[i].name, text);
  }
  return "";
}

TEST(NodeModels, ComputeWhatOnnxSays) {
  ASSERT_TRUE(fs::exists(kFolder)) << "package libonnx-testdata is not installed";
  int known = 0, right = 0, refused = 0, old = 0, wrongData = 0;
  for (const std::string& name : folders()) {
    const auto expected = kExpectedRefusals.find(name);
    auto model = onnx_io::readModel(fmt::format("{}/{}/model.onnx", kFolder, name));
    if (model && !usesOnlyKnownOperators(*model)) continue;
    if (!model && expected == kExpectedRefusals.end()) {
      // A file that cannot be read at all may still hold nothing but what we do not have.
      EXPECT_EQ(model.status().code(), Code::unsupported) << model.status().message();
      continue;
    }
    ++known;
    const std::string reason = model ? runModel(name, *model) : model.status().message();
    // Of opset 1 only what means the same now is taken.
    if (model && model->opsets.at("") < 7 && !reason.empty()) {
      ++old;
      EXPECT_NE(reason.find("is outside 7 to 28"), std::string::npos) << name << ": '" << reason << "'";
      continue;
    }
    if (const auto wrong = kWrongData.find(name); wrong != kWrongData.end()) {
      ++wrongData;
      EXPECT_NE(reason.find(wrong->second), std::string::npos) << name << ": '" << reason << "'";
      continue;
    }
    if (expected != kExpectedRefusals.end()) {
      ++refused;
      EXPECT_NE(reason.find(expected->second), std::string::npos) << name << ": '" << reason << "'";
      continue;
    }
    EXPECT_EQ(reason, "") << name;
    if (reason.empty()) ++right;
  }
  std::cout << fmt::format("{} node tests of known operators: {} right, {} refused as they must "
                           "be, {} of an older opset, "
                           "{} with wrong data, {} wrong\n",
                           known, right, refused, old, wrongData, known - right - refused - old - wrongData);
  EXPECT_GE(right, 377); // the walk must not pass by finding nothing
}

} // namespace
} // namespace candela::test
