#include "core/compiler/import/dynamic/script_assembly.h"
#include "core/compiler/import/graph_importer.h"

namespace candela::import {
namespace {

/// Imports one model: its inputs, initializers, nodes and outputs.
class ModelImporter {
public:
  ModelImporter(std::shared_ptr<const onnx_io::Model> model, const ImportOptions& options)
      : context_(std::move(model), options), graphs_(context_) {}

  Result<Script> run();

private:
  void addInputs();
  runtime::control_flow::Slot openInput(const onnx_io::ValueInfo& input) const;
  void addFrozen();
  std::vector<Slot> addOutputs();
  /// Whether the input is one although the model has a value for it, which is a default then.
  bool isOverridden(const std::string& name) const {
    return context_.options.shapes.count(name) > 0 &&
           std::ranges::count(context_.model->graph.inputs, name, &onnx_io::ValueInfo::name);
  }

  ImportContext context_;
  GraphImporter graphs_;
};

Result<Script> ModelImporter::run() {
  // functions that cannot be inlined
  if (!context_.diagnostics.empty()) return context_.diagnostics.status(context_.model->path);
  Frame& frame = context_.frames.front();
  if (!context_.model->graph.name.empty()) frame.stage(0).graph.name = context_.model->graph.name;
  addInputs();
  for (const onnx_io::Initializer& initializer : context_.model->graph.initializers)
    if (!context_.options.frozen.count(initializer.name) && !isOverridden(initializer.name))
      graphs_.addConstant(frame, context_.scope, initializer.name, initializer.tensor,
                          "initializer");
  addFrozen();
  std::vector<Slot> outputs;
  if (graphs_.checkOpset(context_.model->opsets, "")) {
    graphs_.addNodes({frame, context_.scope, context_.model->opsets, ""},
                     context_.model->graph.nodes);
    outputs = addOutputs();
  }
  if (!context_.diagnostics.empty()) return context_.diagnostics.status(context_.model->path);
  std::vector<std::string> names;
  for (const onnx_io::ValueInfo& output : context_.model->graph.outputs)
    names.push_back(output.name);
  return assembleScript(context_, outputs, std::move(names));
}

void ModelImporter::addInputs() {
  const auto shapes = bindInputs(context_.model->graph, context_.options, context_.diagnostics);
  std::set<std::string> seen, initialized;
  for (const onnx_io::Initializer& initializer : context_.model->graph.initializers)
    if (!isOverridden(initializer.name)) initialized.insert(initializer.name);
  for (const onnx_io::ValueInfo& input : context_.model->graph.inputs) {
    if (!seen.insert(input.name).second || input.name.empty()) {
      context_.diagnostics.add(badModel("input '{}' is {}", input.name,
                                        input.name.empty() ? "without a name" : "declared twice"));
      continue;
    }
    if (context_.options.frozen.count(input.name) || initialized.count(input.name)) continue;
    const auto shape = shapes.find(input.name);
    Slot slot;
    slot.frame = &context_.frames.front();
    if (shape != shapes.end()) {
      slot = slot.frame->addParam(input.name, {input.elem, shape->second});
    } else if (context_.options.bindAtRun && context_.diagnostics.empty()) {
      slot.run = context_.script.flow.addSlot(openInput(input));
    } else {
      slot.poisoned = true;
    }
    if (!slot.poisoned) context_.script.flow.inputs.push_back(slot.run);
    graphs_.define(context_.scope, input.name, slot, fmt::format("input '{}'", input.name));
  }
}

void ModelImporter::addFrozen() {
  for (const auto& [name, tensor] : context_.options.frozen) {
    const auto input =
        std::ranges::find(context_.model->graph.inputs, name, &onnx_io::ValueInfo::name);
    if (input == context_.model->graph.inputs.end()) {
      context_.diagnostics.add(badArgument("frozen input '{}': no such input in the model", name));
      continue;
    }
    if (!isDeclared(*input, {tensor.elem, tensor.dims}))
      context_.diagnostics.add(badArgument("frozen input '{}' is {} but the model declares {}",
                                           name, tensor.typeText(), declaredText(*input)));
    graphs_.addConstant(context_.frames.front(), context_.scope, name, tensor, "input");
  }
}

std::vector<Slot> ModelImporter::addOutputs() {
  std::set<std::string> seen;
  std::vector<Slot> outputs;
  if (context_.model->graph.outputs.empty())
    context_.diagnostics.add(badModel("the graph has no outputs"));
  for (const onnx_io::ValueInfo& output : context_.model->graph.outputs) {
    if (!seen.insert(output.name).second)
      context_.diagnostics.add(badModel("output '{}' is declared twice", output.name));
    const Slot* found = context_.scope.find(output.name);
    if (!found)
      context_.diagnostics.add(badModel("output '{}' is produced by nothing", output.name));
    if (!found || found->poisoned) continue;
    if (context_.frames.front().isTyped(*found))
      context_.diagnostics.add(graphs_.checkOutput(output, context_.frames.front().typeOf(*found),
                                                   context_.options.dims));
    outputs.push_back(*found);
  }
  return outputs;
}

/// An input that waits for the run, with the dims that are known.
runtime::control_flow::Slot ModelImporter::openInput(const onnx_io::ValueInfo& input) const {
  using Kind = runtime::control_flow::Slot::Kind;
  runtime::control_flow::Slot open{input.name, Kind::tensor, input.elem, {}, input.hasShape};
  if (input.elem == Elem::none)
    open.kind = input.what == "a sequence" ? Kind::sequence : Kind::optional;
  for (const onnx_io::Dim& dim : input.dims) {
    const auto bound = context_.options.dims.find(dim.name);
    open.dims.push_back(dim.value < 0 && bound != context_.options.dims.end() ? bound->second
                                                                              : dim.value);
  }
  return open;
}

} // namespace

Result<Script> importScript(std::shared_ptr<const onnx_io::Model> model,
                            const ImportOptions& options) {
  return ModelImporter(std::move(model), options).run();
}

Result<graph::Graph> importModel(const onnx_io::Model& model, const ImportOptions& options) {
  // Nothing of it is kept: a model that needs more than one Graph is refused.
  const std::shared_ptr<const onnx_io::Model> borrowed(std::shared_ptr<const void>(), &model);
  CDL_ASSIGN(Script script, importScript(borrowed, options));
  if (graph::Graph* graph = script.graph()) return std::move(*graph);
  return script.refusal(model.path);
}

std::vector<std::pair<std::string, std::string>> supportedOperators() {
  std::vector<std::string> qualified = importedNames();
  for (const std::string& name : sequenceOperators()) qualified.push_back(name);
  qualified.insert(qualified.end(), controlFlowOperators().begin(), controlFlowOperators().end());
  std::vector<std::pair<std::string, std::string>> names;
  for (const std::string& name : qualified) {
    const size_t dot = name.rfind('.');
    names.emplace_back(dot == std::string::npos ? "" : name.substr(0, dot), name.substr(dot + 1));
  }
  std::ranges::sort(names);
  return names;
}

} // namespace candela::import
