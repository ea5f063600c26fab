#include "conformance/tiers/data_set.h"

#include <filesystem>
#include <set>

#include "core/compiler/import/onnx_io/values.h"

namespace candela::conformance::tiers {
namespace {

namespace fs = std::filesystem;

/// The file as what the model says it is: each kind is a message of its own, which would read as
/// nonsense of another.
Result<runtime::control_flow::Value> readAs(const std::string& file,
                                            const import::onnx_io::ValueInfo& info) {
  std::error_code ignored;
  if (info.what == "an optional") {
    if (!fs::exists(file, ignored)) return runtime::control_flow::Value();
    CDL_ASSIGN(import::onnx_io::Optional optional, import::onnx_io::readOptional(file));
    if (optional.kind == import::onnx_io::Optional::Kind::tensor)
      return runtime::control_flow::Value(std::move(optional.tensors[0]));
    return optional.kind == import::onnx_io::Optional::Kind::list
               ? runtime::control_flow::Value(std::move(optional.tensors))
               : runtime::control_flow::Value();
  }
  if (!fs::exists(file, ignored)) return failure(Code::not_found, "{}: is missing", file);
  if (info.what == "a sequence") {
    CDL_ASSIGN(std::vector<Tensor> items, import::onnx_io::readSequence(file));
    return runtime::control_flow::Value(std::move(items));
  }
  if (info.elem == Elem::none)
    return failure(Code::unsupported, "'{}' is {}", info.name, info.what);
  CDL_ASSIGN(Tensor tensor, import::onnx_io::readTensor(file));
  // bfloat16 data is stored as the uint16 that holds its bits.
  if (info.elem == Elem::bf16_ && tensor.elem == Elem::u16_) tensor.elem = Elem::bf16_;
  return runtime::control_flow::Value(std::move(tensor));
}

} // namespace

Result<DataSet> readDataSet(const std::string& folder, const import::onnx_io::Model& model) {
  DataSet set;
  std::set<std::string> initialised;
  for (const import::onnx_io::Initializer& initializer : model.graph.initializers)
    initialised.insert(initializer.name);
  size_t index = 0;
  for (const import::onnx_io::ValueInfo& input : model.graph.inputs) {
    if (initialised.count(input.name)) continue;
    CDL_ASSIGN(runtime::control_flow::Value value,
               readAs(fmt::format("{}/input_{}.pb", folder, index++), input));
    set.inputs.emplace(input.name, std::move(value));
  }
  for (size_t i = 0; i < model.graph.outputs.size(); ++i) {
    CDL_ASSIGN(runtime::control_flow::Value value,
               readAs(fmt::format("{}/output_{}.pb", folder, i), model.graph.outputs[i]));
    set.outputs.push_back(std::move(value));
  }
  return set;
}

} // namespace candela::conformance::tiers
