#include "conformance/tiers/onnx_tier.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "conformance/judge/random_numbers.h"
#include "conformance/suite.h"
#include "conformance/tiers/data_set.h"
#include "core/compiler/import/import.h"
#include "core/support/compare.h"
#include "core/support/float_bits.h"
#include "core/support/text/scan.h"

namespace candela::conformance::tiers {
namespace {

namespace fs = std::filesystem;
using Outcome = CaseResult::Outcome;

/// Everything that one case is about.
struct Material {
  import::onnx_io::Model model;
  std::vector<DataSet> sets;
  bool transforms = false; ///< DFT, STFT: rounding errors are of the size of the largest output
  /// The data has the numbers of NumPy's generator, which nobody else has: they say what a
  /// distribution is.
  Status (*random)(const Tensor& got, const Tensor& expected) = nullptr;
};

bool isDrawn(const import::onnx_io::Node& node) {
  return node.opType.starts_with("Random") || node.opType == "Multinomial";
}

Result<Material> readMaterial(const OnnxCase& onnxCase) {
  Material material;
  CDL_ASSIGN(material.model, import::onnx_io::readModel(onnxCase.folder + "/model.onnx"));
  std::vector<fs::path> folders;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(onnxCase.folder, error))
    if (entry.path().filename().string().starts_with("test_data_set_"))
      folders.push_back(entry.path());
  if (folders.empty()) return failure(Code::not_found, "{}: no test_data_set_*", onnxCase.folder);
  std::sort(folders.begin(), folders.end());
  for (const fs::path& folder : folders) {
    CDL_ASSIGN(DataSet set, readDataSet(folder.string(), material.model));
    material.sets.push_back(std::move(set));
  }
  for (const import::onnx_io::Node& node : material.model.graph.nodes) {
    material.transforms |= text::isOneOf(node.opType, "DFT|STFT");
    if (isDrawn(node) || node.opType == "Bernoulli" ||
        (node.opType == "Dropout" && node.inputs.size() > 2))
      material.random = judge::checkKept;
  }
  // What is computed of random numbers are numbers kept or left out, as Bernoulli's definition
  // does.
  for (const import::onnx_io::Node& node : material.model.graph.nodes)
    for (const import::onnx_io::ValueInfo& output : material.model.graph.outputs)
      if (isDrawn(node) && std::ranges::find(node.outputs, output.name) != node.outputs.end())
        material.random = judge::checkDrawn;
  return material;
}

/// The shapes of this data set, for inputs whose shape the model leaves open.
std::map<std::string, Shape> openShapes(const import::onnx_io::Model& model, const DataSet& set) {
  std::map<std::string, Shape> shapes;
  for (const import::onnx_io::ValueInfo& input : model.graph.inputs) {
    const bool open =
        !input.hasShape || std::any_of(input.dims.begin(), input.dims.end(),
                                       [](const import::onnx_io::Dim& d) { return d.value < 0; });
    const auto at = set.inputs.find(input.name);
    if (open && at != set.inputs.end() && at->second.isTensor())
      shapes[input.name] = at->second.tensor.dims;
  }
  return shapes;
}

Status compareOne(const Material& material, const Tensor& expected, const Tensor& got) {
  if (material.random && got.elem == expected.elem && got.dims == expected.dims)
    return material.random(got, expected);
  CompareBound bound;
  // ONNX made the data with a rounding after every step: two units in the last place, as its own
  // runner allows.
  if (expected.elem == Elem::bf16_) bound.relative = 0x1p-6;
  if (expected.elem == Elem::f16_) bound.relative = 0x1p-9;
  if (material.transforms && isFloat(expected.elem)) {
    double largest = 0;
    for (int64_t e = 0, count = expected.count(); e < count; ++e) {
      const double size = std::abs(elementAsReal(expected, e));
      if (std::isfinite(size)) largest = std::max(largest, size);
    }
    bound.absolute = 1e-6 * largest;
  }
  const Comparison result = compareTensors(got, expected, bound);
  return result.passed() ? Status::ok() : failure(Code::mismatch, "{}", result.text());
}

Status compareOutputs(const Material& material, const DataSet& set,
                      const std::vector<runtime::control_flow::Value>& got) {
  if (got.size() != set.outputs.size())
    return failure(Code::mismatch, "{} outputs, expected {}", got.size(), set.outputs.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const runtime::control_flow::Value& expected = set.outputs[i];
    const std::string who = fmt::format("output '{}'", material.model.graph.outputs[i].name);
    if (got[i].kind != expected.kind ||
        (expected.isSequence() && got[i].items->size() != expected.items->size()))
      return failure(Code::mismatch, "{} is {}, expected {}", who, got[i].text(), expected.text());
    if (expected.isTensor())
      CDL_TRY(compareOne(material, expected.tensor, got[i].tensor).context(who));
    for (size_t k = 0; expected.isSequence() && k < expected.items->size(); ++k)
      CDL_TRY(compareOne(material, (*expected.items)[k], (*got[i].items)[k])
                  .context(fmt::format("{}[{}]", who, k)));
  }
  return Status::ok();
}

/// The epsilon with which the first tensor of a first step of Adam was moved; nullopt where the
/// material is no such step alone.
std::optional<double> epsilonOfAdam(const Material& material) {
  const std::vector<import::onnx_io::Node>& nodes = material.model.graph.nodes;
  if (nodes.size() != 1 || nodes[0].opType != "Adam" || nodes[0].inputs.size() < 6)
    return std::nullopt;
  const DataSet& set = material.sets.at(0);
  const size_t tensors = (nodes[0].inputs.size() - 2) / 4;
  const auto input = [&](size_t i) {
    return elementAsReal(set.inputs.at(nodes[0].inputs[i]).tensor, 0);
  };
  const auto output = [&](size_t i) { return elementAsReal(set.outputs.at(i).tensor, 0); };
  if (input(1) != 0) return std::nullopt;
  const double moved = input(2) - output(0);
  return input(0) * output(tensors) / moved - std::sqrt(output(2 * tensors));
}

/// What explains a failure, or empty: inputs that have not the shape that the model declares,
/// (ONNX 1.12) bfloat16 outputs that are float32 inputs cut off where the standard rounds to
/// nearest even, and a step of Adam by an epsilon of 0.01 that its node does not say.
std::string dataDefect(const Material& material) {
  if (const std::optional<double> epsilon = epsilonOfAdam(material);
      epsilon && std::abs(*epsilon - 0.01) < 1e-4 &&
      !material.model.graph.nodes[0].attributes.count("epsilon"))
    return "the data was made with an epsilon of 0.01, which the node does not have";
  for (const DataSet& set : material.sets)
    for (const import::onnx_io::ValueInfo& input : material.model.graph.inputs) {
      const auto at = set.inputs.find(input.name);
      if (at == set.inputs.end() || !at->second.isTensor()) continue;
      const Tensor& given = at->second.tensor;
      bool fits = !input.hasShape || given.dims.size() == input.dims.size();
      for (size_t i = 0; fits && input.hasShape && i < given.dims.size(); ++i)
        fits = input.dims[i].value < 0 || input.dims[i].value == given.dims[i];
      if (!fits)
        return fmt::format("'{}' is {} in the data, which the model does not declare", input.name,
                           given.typeText());
      if (given.elem != Elem::f32_) continue;
      for (const runtime::control_flow::Value& value : set.outputs) {
        if (!value.isTensor()) continue;
        const Tensor& output = value.tensor;
        if (output.elem != Elem::bf16_ || output.dims != given.dims) continue;
        bool cut = true, rounded = true;
        for (int64_t i = 0; i < given.count(); ++i) {
          const uint32_t from = given.as<uint32_t>()[i], to = output.as<uint16_t>()[i];
          cut &= to == from >> 16;
          rounded &= to == fromReal(Elem::bf16_, elementAsReal(given, i));
        }
        if (cut && !rounded)
          return "the expected bfloat16 values are truncated, not rounded to nearest even";
      }
    }
  return "";
}

Status runScript(const Material& material, const DataSet& set, import::Script script,
                 const RunCase& run, Work& work) {
  std::vector<runtime::control_flow::Value> inputs;
  for (const runtime::control_flow::SlotId slot : script.flow.inputs) {
    const auto at = set.inputs.find(script.flow.slots[slot].name);
    if (at == set.inputs.end())
      return failure(Code::internal, "import made an input '{}' that the model does not have",
                     script.flow.slots[slot].name);
    inputs.push_back(at->second);
  }
  CDL_ASSIGN(const RunAnswer answer, run(std::move(script), inputs));
  work += answer.work;
  return compareOutputs(material, set, answer.outputs);
}

/// All data sets; `frozen` is true where one of them fails with inputs, which shapes follow from,
/// as constants.
Status runAll(const std::shared_ptr<const Material>& material, const RunCase& run, bool& frozen,
              Work& work) {
  const std::shared_ptr<const import::onnx_io::Model> model(material, &material->model);
  for (const DataSet& set : material->sets) {
    import::ImportOptions options;
    options.bindAtRun = true;
    options.shapes = openShapes(material->model, set);
    CDL_ASSIGN(import::Script script, import::importScript(model, options));
    // What waits for contents: most are single Graphs once those inputs are known, which says more
    // of a backend. Then as it is.
    if (const std::vector<std::string> waited = script.demandedInputs(); !waited.empty()) {
      for (const std::string& name : waited) {
        options.frozen[name] = set.inputs.at(name).tensor;
        options.shapes.erase(name);
      }
      frozen = true;
      if (Result<import::Script> known = import::importScript(model, options); known)
        CDL_TRY(runScript(*material, set, std::move(known).value(), run, work));
      frozen = false;
    }
    CDL_TRY(runScript(*material, set, std::move(script), run, work));
  }
  return Status::ok();
}

Outcome outcomeOf(const Status& status) {
  if (status) return Outcome::passed;
  return status.code() == Code::unsupported ? Outcome::unsupported : Outcome::failed;
}

} // namespace

Result<std::vector<OnnxCase>> listOnnxCases(const std::string& directory) {
  std::vector<OnnxCase> cases;
  std::error_code error;
  const auto listFolder = [&](const fs::path& folder, const std::string& prefix,
                              auto&& self) -> void {
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      std::error_code ignored;
      const std::string name = prefix + entry.path().filename().string();
      if (fs::exists(entry.path() / "model.onnx", ignored))
        cases.push_back({"onnx:" + name, entry.path().string()});
      else if (prefix.empty() && entry.is_directory(ignored))
        self(entry.path(), name + "/", self);
    }
  };
  listFolder(directory, "", listFolder);
  if (error) return failure(Code::not_found, "{}: {}", directory, error.message());
  if (cases.empty()) return failure(Code::not_found, "{}: no folder with a model.onnx", directory);
  std::sort(cases.begin(), cases.end(),
            [](const OnnxCase& a, const OnnxCase& b) { return a.name < b.name; });
  return cases;
}

CaseResult runOnnxCase(const OnnxCase& onnxCase, const RunCase& run) {
  const auto start = std::chrono::steady_clock::now();
  CaseResult result;
  result.name = onnxCase.name;
  bool frozen = false;
  Result<Material> read = readMaterial(onnxCase);
  const auto material = read ? std::make_shared<const Material>(std::move(read).value()) : nullptr;
  const Status status = material ? runAll(material, run, frozen, result.work) : read.status();
  result.outcome = outcomeOf(status);
  result.rawPassed = status && !frozen;
  result.reason = status.message();
  if (const std::string defect =
          material && result.outcome == Outcome::failed ? dataDefect(*material) : "";
      !defect.empty()) {
    result.reason = fmt::format("{} ({})", defect, status.message());
    result.outcome = Outcome::xfail;
  }
  result.milliseconds =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return result;
}

Result<std::vector<Case>> onnxCases(const Selection& selection) {
  CDL_ASSIGN(const std::vector<OnnxCase> found, listOnnxCases(selection.onnxData));
  std::vector<Case> cases;
  // A smoke is every fortieth, by name.
  const size_t step = selection.size == Size::quick ? 40 : 1;
  for (size_t i = 0; i < found.size(); i += step)
    cases.push_back(
        {found[i].name, [one = found[i], toPrimitives = selection.toPrimitives](Port& port) {
           return runOnnxCase(one, backendRunner(port, toPrimitives));
         }});
  return cases;
}

} // namespace candela::conformance::tiers
