#include "core/compiler/train/gradients.h"

#include <algorithm>

#include "core/compiler/differentiate/differentiate.h"
#include "core/compiler/differentiate/term.h"
#include "core/compiler/train/step_graph.h"

namespace candela::train {
namespace {

using differentiate::Cotangent, differentiate::Gradient;
using graph::Graph, graph::Value;

/// Of graphs: what inputs that stood for constants are again.
using Constants = std::map<std::string, Tensor>;

bool isOfFloats(const Value* value) {
  return isFloat(value->type.elem) && !isStorageOnly(value->type.elem);
}

/// The output of that name and its number.
Result<size_t> outputOf(const Graph& graph, const std::string& name) {
  const std::vector<std::string>& names = graph.outputNames();
  const auto found = std::ranges::find(names, name);
  if (!name.empty() && found == names.end())
    return badArgument("{}: the model has no output '{}'; there are {}", graph.name, name,
                       fmt::join(names, ", "));
  if (!name.empty()) return static_cast<size_t>(found - names.begin());
  const auto first = std::ranges::find_if(graph.outputs(), isOfFloats);
  if (first == graph.outputs().end())
    return badArgument("{}: no output is of floats: there is nothing to differentiate", graph.name);
  if (std::ranges::count_if(graph.outputs(), isOfFloats) > 1)
    return badArgument("{}: the model has {} outputs, say which one the gradients are of: {}",
                       graph.name, names.size(), fmt::join(names, ", "));
  return static_cast<size_t>(first - graph.outputs().begin());
}

Result<std::vector<Value*>> valuesOf(const Graph& graph, const std::vector<std::string>& names) {
  std::vector<Value*> values;
  if (names.empty()) std::ranges::copy_if(graph.inputs(), std::back_inserter(values), isOfFloats);
  for (const std::string& name : names) {
    const auto found = std::ranges::find(graph.inputs(), name, &Value::name);
    if (found == graph.inputs().end())
      return badArgument("{}: '{}' is no input and no constant of the model's main graph",
                         graph.name, name);
    if (std::ranges::count(values, *found))
      return badArgument("{}: the gradient of '{}' is asked for twice", graph.name, name);
    values.push_back(*found);
  }
  if (values.empty())
    return badArgument("{}: no input is of floats: there is nothing to differentiate by",
                       graph.name);
  return values;
}

/// An output of its own: a gradient may be an input, a constant or another output.
Status addOwnOutput(Graph& graph, Value* value, const std::string& name) {
  differentiate::Writer writer{graph};
  try {
    Value* own = differentiate::make(graph::OpKind::Reshape, {differentiate::Term(writer, value)},
                                     {{"shape", value->type.shape()}})
                     .value();
    graph.rename(own, graph.uniqueName(name));
    graph.addOutput(own, own->name);
  } catch (const differentiate::Failure& failure) {
    return failure.status;
  }
  return Status::ok();
}

Result<Graph> differentiated(Graph graph, const GradientRequest& request,
                             const Constants& constants) {
  CDL_ASSIGN(const size_t output, outputOf(graph, request.of));
  CDL_ASSIGN(const std::vector<Value*> wrt, valuesOf(graph, request.wrt));
  Cotangent cotangent{graph.outputs()[output], nullptr};
  const std::string name = graph.outputNames()[output];
  if (cotangent.of->type.count() != 1)
    cotangent.weight = graph.addInput(graph.uniqueName("d_" + name), cotangent.of->type);
  CDL_ASSIGN(const std::vector<Gradient> gradients,
             differentiate::differentiate(graph, std::span(&cotangent, 1), wrt));
  Graph own;
  own.name = graph.name;
  std::map<const Value*, Value*> copies;
  for (const Value* input : graph.inputs()) {
    const auto constant = constants.find(input->name);
    if (constant == constants.end()) {
      copies[input] = own.addInput(input->name, input->type);
      continue;
    }
    copies[input] = own.addConstant(constant->second);
    own.rename(copies[input], input->name);
  }
  for (const auto& node : graph.nodes()) own.addCopy(*node, copies);
  own.addOutput(copies.at(cotangent.of), name);
  for (size_t i = 0; i < wrt.size(); ++i)
    CDL_TRY(addOwnOutput(own, copies.at(gradients[i].value), "d_" + wrt[i]->name));
  CDL_TRY(graph::verify(own));
  return own;
}

} // namespace

Result<Graph> gradientGraph(Graph graph, const GradientRequest& request) {
  return differentiated(std::move(graph), request, {});
}

Result<Graph> gradientGraph(const import::onnx_io::Model& model, const GradientRequest& request,
                            const import::ImportOptions& options) {
  std::vector<Parameter> opened;
  Constants constants;
  for (const import::onnx_io::Initializer& each : model.graph.initializers) {
    if (!std::ranges::count(request.wrt, each.name)) continue;
    if (!isFloat(each.tensor.elem))
      return badArgument("{}: '{}' is {}: there is no gradient with respect to it", model.path,
                         each.name, each.tensor.typeText());
    opened.push_back({each.name, Role::weight, 1, "", each.tensor});
    constants.emplace(each.name, each.tensor);
  }
  CDL_ASSIGN(Graph graph, import::importModel(withParametersAsInputs(model, opened), options));
  graph.name = model.path;
  return differentiated(std::move(graph), request, constants);
}

} // namespace candela::train
