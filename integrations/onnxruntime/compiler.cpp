#include "integrations/onnxruntime/compiler.h"

#include <filesystem>
#include <optional>

namespace candela::ort {

using namespace abi;

namespace {

/// Sizes for open dims while a backend is asked: the first dim of an input, and all others.
/// Several, for a model may need more than one size or a multiple of some.
struct Sample {
  int64_t first;
  int64_t others;
};
constexpr Sample kSamples[] = {{1, 64}, {1, 8}, {8, 8}, {2, 32}, {1, 1}};

std::string keyOf(const std::string& bytes) {
  return std::to_string(bytes.size()) + ":" + std::to_string(std::hash<std::string>()(bytes));
}

bool isStatic(const GraphView& graph, const Part& part) {
  for (const std::string& name : part.inputs)
    if (!graph.value(name).isStatic()) return false;
  return true;
}

/// "x=1x3x64x64" for every input with an open dim; a name stands for one size everywhere.
std::vector<std::string> shapesOf(const GraphView& graph, const Part& part, Sample sample) {
  std::map<std::string, int64_t> sizes;
  std::vector<std::string> shapes;
  for (const std::string& name : part.inputs) {
    const Value& value = graph.value(name);
    if (value.isStatic()) continue;
    std::string shape = name + "=";
    for (size_t axis = 0; axis < value.dims.size(); ++axis) {
      const Dim& dim = value.dims[axis];
      const int64_t open = axis == 0 ? sample.first : sample.others;
      int64_t size = dim.size;
      if (size < 0) size = sizes.try_emplace(nameOfDim(name, axis, dim), open).first->second;
      shape += (axis > 0 ? "x" : "") + std::to_string(size);
    }
    shapes.push_back(shape);
  }
  return shapes;
}

struct ElementPair {
  ElementType theirs;
  candela_elem_t ours;
};
constexpr ElementPair kElements[] = {
    {ElementType::Float, CANDELA_F32},     {ElementType::Float16, CANDELA_F16},
    {ElementType::Bfloat16, CANDELA_BF16}, {ElementType::Double, CANDELA_F64},
    {ElementType::Int8, CANDELA_I8},       {ElementType::Uint8, CANDELA_U8},
    {ElementType::Int16, CANDELA_I16},     {ElementType::Uint16, CANDELA_U16},
    {ElementType::Int32, CANDELA_I32},     {ElementType::Uint32, CANDELA_U32},
    {ElementType::Int64, CANDELA_I64},     {ElementType::Uint64, CANDELA_U64},
    {ElementType::Bool, CANDELA_BOOL},
};

const ElementPair* findElement(ElementType type) {
  for (const ElementPair& pair : kElements)
    if (pair.theirs == type) return &pair;
  return nullptr;
}

} // namespace

bool isCandelas(ElementType type) { return findElement(type) != nullptr; }

candela_elem_t elementOf(ElementType type) {
  const ElementPair* const pair = findElement(type);
  if (pair) return pair->ours;
  throw Failure(ErrorCode::NotImplemented,
                "a tensor of element type " + std::to_string(static_cast<int>(type)) +
                    " of ONNX Runtime goes in or out: Candela has no such type");
}

Compiled Compiler::compileBytes(const GraphView& graph, const std::string& bytes,
                                const sdk::Options& options) const {
  // Messages begin with this name, whose ending says what the bytes are.
  std::string name = std::filesystem::path(graph.modelPath).filename().string();
  if (name.empty()) name = "model";
  if (!name.ends_with(".onnx")) name += ".onnx";
  return std::make_shared<sdk::Model>(
      sdk::Model::compile(bytes.data(), bytes.size(), name, options));
}

Compiler::Answer Compiler::ask(const GraphView& graph, const Part& part) {
  const std::string bytes = writeModel(api_, graph, part);
  sdk::Options options = options_.compile;
  options.bindAtRun = true; // for shapes that depend on data
  if (isStatic(graph, part)) {
    const std::string key = keyOf(bytes);
    Compiled& kept = kept_[key];
    try {
      if (!kept) kept = compileBytes(graph, bytes, options);
    } catch (...) {
      forget(key);
      throw;
    }
    return {kept->reportJson(), key};
  }
  std::optional<sdk::Error> first;
  for (const Sample sample : kSamples) {
    options.shapes = shapesOf(graph, part, sample);
    try {
      return {compileBytes(graph, bytes, options)->reportJson(), ""};
    } catch (const sdk::Error& error) {
      if (error.status() == CANDELA_UNSUPPORTED) throw; // of no size
      if (!first) first = error;
    }
  }
  throw *first;
}

Compiled Compiler::compile(const GraphView& graph, const Part& part) {
  const std::string bytes = writeModel(api_, graph, part);
  const auto kept = kept_.find(keyOf(bytes));
  if (kept != kept_.end()) {
    Compiled compiled = kept->second;
    kept_.erase(kept);
    return compiled;
  }
  sdk::Options options = options_.compile;
  options.bindAtRun = true;
  // With open dims no node has its backend before the run: ask() has seen that of sample shapes.
  if (!isStatic(graph, part)) options.requireNative = false;
  return compileBytes(graph, bytes, options);
}

} // namespace candela::ort
