// Subgraphs that are chosen or repeated.
#include "core/compiler/import/tflite/step.h"

namespace candela::import::tflite {
namespace {

std::vector<Name> storedFrom(Step& step, size_t first) {
  std::vector<Name> names;
  for (size_t i = first; i < step.inputCount(); ++i) names.push_back(step.stored(i));
  return names;
}

/// What a nested graph gives, under names of its own: an output may be an input, or stand twice.
void addOutput(ModelWriter& model, onnx_io::Graph& graph, const Name& value,
               const std::string& wanted) {
  onnx_io::Node node;
  node.name = wanted;
  node.opType = "Identity";
  node.inputs = {value};
  node.outputs = {model.unique(wanted)};
  graph.outputs.push_back({});
  graph.outputs.back().name = node.outputs[0];
  graph.nodes.push_back(std::move(node));
}

void addOutputs(Step& step, onnx_io::Graph& graph, const std::vector<Name>& values,
                const std::string& prefix) {
  for (size_t i = 0; i < values.size(); ++i)
    addOutput(step.writer().model(), graph, values[i], fmt::format("{}out.{}", prefix, i));
}

std::shared_ptr<onnx_io::Graph> branch(Step& step, int64_t subgraph, const char* name) {
  auto graph = std::make_shared<onnx_io::Graph>();
  graph->name = name;
  const std::string prefix = fmt::format("{}/{}/", step.name(), name);
  const std::vector<Name> values =
      writeSubgraph(step.writer().model(), subgraph, storedFrom(step, 1), *graph, prefix);
  if (values.size() != step.outputCount())
    reject("subgraph {} has {} outputs, expected {}", subgraph, values.size(), step.outputCount());
  addOutputs(step, *graph, values, prefix);
  return graph;
}

void finish(Step& step, const std::vector<Name>& results) {
  for (size_t i = 0; i < results.size(); ++i) step.setStored(i, results[i]);
}

void writeIf(Step& step) {
  const auto& options = step.options<schema::IfOptions>();
  // The operands are read outside first, so that what they are made of stands there.
  storedFrom(step, 0);
  Attributes attributes = {{"then_branch", branch(step, options.then_subgraph_index(), "then")},
                           {"else_branch", branch(step, options.else_subgraph_index(), "else")}};
  finish(step, step.addAll("If", {step.stored(0)}, step.outputCount(), std::move(attributes)));
}

/// The condition's one value. It stands before the loop, and in its body for the turn that follows.
Name condition(Step& step, int64_t subgraph, const std::vector<Name>& values, onnx_io::Graph& graph,
               const std::string& prefix) {
  const std::vector<Name> results =
      writeSubgraph(step.writer().model(), subgraph, values, graph, prefix);
  if (results.size() != 1)
    reject("subgraph {} has {} outputs, expected a condition", subgraph, results.size());
  return results[0];
}

onnx_io::ValueInfo scalarInfo(const Name& name, Elem elem) {
  onnx_io::ValueInfo info;
  info.name = name;
  info.elem = elem;
  info.hasShape = true;
  return info;
}

void writeWhile(Step& step) {
  const auto& options = step.options<schema::WhileOptions>();
  if (step.inputCount() != step.outputCount())
    reject("has {} inputs and {} outputs", step.inputCount(), step.outputCount());
  ModelWriter& model = step.writer().model();
  const std::vector<Name> begin = storedFrom(step, 0);
  const Name isOn = condition(step, options.cond_subgraph_index(), begin, step.writer().graph(),
                              step.name() + "/first/");
  auto body = std::make_shared<onnx_io::Graph>();
  body->name = "body";
  const std::string prefix = step.name() + "/body/";
  body->inputs = {scalarInfo(model.unique(prefix + "turn"), Elem::i64_),
                  scalarInfo(model.unique(prefix + "on"), Elem::bool_)};
  std::vector<Name> carried;
  for (size_t i = 0; i < begin.size(); ++i) {
    onnx_io::ValueInfo info;
    info.name = model.unique(fmt::format("{}in.{}", prefix, i));
    info.elem = step.input(i).elem;
    carried.push_back(info.name);
    body->inputs.push_back(std::move(info));
  }
  const std::vector<Name> next =
      writeSubgraph(model, options.body_subgraph_index(), carried, *body, prefix);
  if (next.size() != begin.size())
    reject("its body has {} outputs, expected {}", next.size(), begin.size());
  const Name goesOn =
      condition(step, options.cond_subgraph_index(), next, *body, step.name() + "/next/");
  addOutput(model, *body, goesOn, prefix + "goes on");
  addOutputs(step, *body, next, prefix);
  std::vector<Name> inputs = {"", isOn};
  inputs.insert(inputs.end(), begin.begin(), begin.end());
  finish(step, step.addAll("Loop", std::move(inputs), step.outputCount(), {{"body", body}}));
}

constexpr std::string_view kFlowLimits = "no variables inside";

constexpr Operator kControl[] = {
    {schema::BuiltinOperator_IF, 1, -1, -1, writeIf, kFlowLimits},
    {schema::BuiltinOperator_WHILE, 1, -1, -1, writeWhile, kFlowLimits},
};

} // namespace

std::span<const Operator> controlOperators() { return kControl; }

} // namespace candela::import::tflite
