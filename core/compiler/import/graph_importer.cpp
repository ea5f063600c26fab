#include "core/compiler/import/graph_importer.h"

#include "core/compiler/import/custom_importer.h"
#include "core/compiler/import/dynamic/deferred_nodes.h"
#include "core/compiler/import/dynamic/flow_values.h"
#include "core/compiler/import/gradient_targets.h"
#include "core/compiler/import/opset_history.h"
#include "core/compiler/import/topological_order.h"

namespace candela::import {
namespace {

/// A node of a function's body as this call makes it: attribute references replaced by the call's
/// attributes or the function's defaults, or left out where there is neither; and without what the
/// call leaves out.
onnx_io::Node bindBody(const onnx_io::Node& node, const onnx_io::Function& function,
                       const onnx_io::Node& call, const Scope& scope) {
  onnx_io::Node bound = node;
  bound.attributeRefs.clear();
  for (const auto& [name, reference] : node.attributeRefs) {
    const auto given = call.attributes.find(reference);
    const auto fallback = function.attributeDefaults.find(reference);
    if (given != call.attributes.end())
      bound.attributes.emplace(name, given->second);
    else if (fallback != function.attributeDefaults.end())
      bound.attributes.emplace(name, fallback->second);
  }
  for (std::string& input : bound.inputs)
    if (const Slot* found = scope.find(input); found && found->isAbsent()) input.clear();
  return bound;
}

std::string nodeText(const std::string& name, const onnx_io::Node& node) {
  return fmt::format("node '{}' ({})", name, node.opType);
}

std::string nodeName(const onnx_io::Node& node, size_t index) {
  return node.name.empty() ? fmt::format("{}_{}", node.opType, index) : node.name;
}

} // namespace

GraphImporter::GraphImporter(ImportContext& context)
    : context_(context), controlFlow_(context, *this), sequences_(context, *this) {}

void GraphImporter::addConstant(Frame& frame, Scope& scope, const std::string& name,
                                const Tensor& tensor, const char* role) {
  const Slot slot = frame.addConstant(tensor);
  frame.stage(0).graph.rename(slot.value, name);
  define(scope, name, slot, fmt::format("{} '{}'", role, name));
}

Status GraphImporter::checkOutput(const onnx_io::ValueInfo& declared,
                                  const graph::TensorType& inferred,
                                  const std::map<std::string, int64_t>& named) const {
  if (disputed_ && declared.elem != Elem::none && isDeclaredRank(declared, inferred))
    return Status::ok();
  return checkDeclared(declared, inferred, named);
}

bool GraphImporter::checkOpset(const Opsets& opsets, const std::string& who) {
  const auto opset = opsets.find("");
  if (opset == opsets.end()) return true; // reported where it is needed
  // Older opsets are judged operator by operator.
  if (opset->second >= 1 && opset->second <= kNewestOpset) return true;
  context_.diagnostics.add(failure(Code::unsupported, "{}opset {} is outside {} to {}", who,
                                   opset->second, kOldestOpset, kNewestOpset));
  return false;
}

void GraphImporter::addNodes(const Place& place, const std::vector<onnx_io::Node>& given) {
  const std::string& prefix = place.prefix;
  const std::vector<onnx_io::Node>& nodes =
      withGradientTargets(given, context_.rewritten.emplace_back());
  TopologicalOrder order = topologicalOrder(nodes);
  if (!order.cycle.empty()) addStuck(place, nodes, order);
  for (size_t index : order.nodes) {
    const onnx_io::Node& node = nodes[index];
    const std::string name = prefix + nodeName(node, index);
    if (++context_.nodes > kMaxNodes) {
      if (context_.nodes == kMaxNodes + 1)
        context_.diagnostics.add(
            badModel("node '{}': with its turns and calls the model has more than {} nodes", name,
                     kMaxNodes));
      return;
    }
    if (place.function) {
      addNode(place, bindBody(node, *place.function, *place.call, place.scope), name);
      continue;
    }
    for (const auto& [attribute, reference] : node.attributeRefs)
      context_.diagnostics.add(
          badModel("{}: attribute '{}' refers to '{}', but this is no function",
                   nodeText(name, node), attribute, reference));
    addNode(place, node, name);
  }
}

void GraphImporter::addStuck(const Place& place, const std::vector<onnx_io::Node>& nodes,
                             const TopologicalOrder& order) {
  const std::string& prefix = place.prefix;
  std::string chain;
  for (size_t index : order.cycle)
    chain += fmt::format("'{}{}' -> ", prefix, nodeName(nodes[index], index));
  context_.diagnostics.add(badModel("cyclic or out of order: {}'{}{}'", chain, prefix,
                                    nodeName(nodes[order.cycle.front()], order.cycle.front())));
  // What hangs on the cycle has no types, but may have more to report.
  const Slot poisoned = Slot::makePoisoned();
  for (size_t index : order.stuck) {
    const onnx_io::Node& node = nodes[index];
    const std::string name = prefix + nodeName(node, index);
    std::vector<Slot> inputs(node.inputs.size(), poisoned), outputs;
    if (!context_.functions.find(node))
      context_.diagnostics.add(
          addOperator(place, node, name, inputs, outputs).context(nodeText(name, node)));
  }
  for (size_t index : order.stuck)
    for (const std::string& output : nodes[index].outputs)
      if (!output.empty()) place.scope.define(output, poisoned);
}

void GraphImporter::addNode(const Place& place, const onnx_io::Node& node, const std::string& name,
                            NodeContext::Contents known) {
  const std::string who = nodeText(name, node);
  const Slot poisoned = Slot::makePoisoned();
  std::vector<Slot> inputs, outputs(node.outputs.size(), poisoned);
  for (const std::string& input : node.inputs) {
    if (input.empty()) {
      inputs.emplace_back();
      continue;
    }
    const Slot* found = place.scope.find(input);
    if (!found)
      context_.diagnostics.add(badModel("{}: input '{}' is produced by nothing", who, input));
    inputs.push_back(found ? *found : poisoned);
  }
  const onnx_io::Function* function = context_.functions.find(node);
  context_.diagnostics.add((function
                                ? inlineCall(node, name, *function, inputs, outputs, place.frame)
                                : addOperator(place, node, name, inputs, outputs, std::move(known)))
                               .context(who));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    if (outputs[i].poisoned && &place.scope == &context_.scope)
      outputs[i] = standIn(node.outputs[i]);
    define(place.scope, node.outputs[i], outputs[i], who);
  }
}

/// Stands for a value that has been reported: where the model declares its type, what reads it can
/// be judged further. Floats only, as integers may be shapes, of which a declaration says nothing.
Slot GraphImporter::standIn(const std::string& name) {
  if (declared_.empty())
    for (const onnx_io::ValueInfo& value : context_.model->graph.values)
      declared_.emplace(value.name, &value);
  const auto found = declared_.find(name);
  Slot slot;
  slot.poisoned = true;
  if (context_.diagnostics.empty() || found == declared_.end() || !found->second->hasShape ||
      !isFloat(found->second->elem))
    return slot;
  Shape shape;
  for (const onnx_io::Dim& dim : found->second->dims) {
    const auto bound =
        dim.value < 0 ? context_.options.dims.find(dim.name) : context_.options.dims.end();
    shape.push_back(bound == context_.options.dims.end() ? dim.value : bound->second);
  }
  if (std::ranges::any_of(shape, [](int64_t dim) { return dim < 0; }) || !elementCount(shape))
    return slot;
  return context_.frames.front().addParam(name, {found->second->elem, shape});
}

Status GraphImporter::inlineCall(const onnx_io::Node& node, const std::string& name,
                                 const onnx_io::Function& function, const std::vector<Slot>& inputs,
                                 std::vector<Slot>& outputs, Frame& frame) {
  if (inputs.size() > function.inputs.size())
    return badModel("has {} inputs but the function takes {}", inputs.size(),
                    function.inputs.size());
  if (outputs.size() > function.outputs.size())
    return badModel("has {} outputs but the function gives {}", outputs.size(),
                    function.outputs.size());
  for (const auto& [attribute, value] : node.attributes)
    if (std::find(function.attributes.begin(), function.attributes.end(), attribute) ==
            function.attributes.end() &&
        !function.attributeDefaults.count(attribute))
      return badModel("attribute '{}' is unknown to the function", attribute);
  if (!checkOpset(function.opsets, fmt::format("function '{}': ", function.name)))
    return Status::ok();
  Scope inner;
  for (size_t i = 0; i < function.inputs.size(); ++i)
    define(inner, function.inputs[i], i < inputs.size() ? inputs[i] : Slot(),
           fmt::format("function '{}'", function.name));
  addNodes({frame, inner, function.opsets, name + "/", &function, &node}, function.nodes);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Slot* found = inner.find(function.outputs[i]);
    if (!found)
      return badModel("the function's output '{}' is produced by nothing", function.outputs[i]);
    outputs[i] = *found;
  }
  return Status::ok();
}

Status GraphImporter::addOperator(const Place& place, const onnx_io::Node& node,
                                  const std::string& name, const std::vector<Slot>& inputs,
                                  std::vector<Slot>& outputs, NodeContext::Contents known) {
  const auto opset = place.opsets.find(node.domain);
  if (opset == place.opsets.end())
    return badModel("domain '{}' has no opset import",
                    node.domain.empty() ? "ai.onnx" : node.domain);
  if (const auto status = controlFlow_.add(place, node, name, inputs, outputs))
    return reportTypes(*status, name, node);
  if (const auto status = sequences_.add(place, node, name, inputs, outputs))
    return reportTypes(*status, name, node);
  const OperatorImporter importer = findImporter(node);
  if (!importer && !node.domain.empty())
    return importCustomNode(place, context_.options.claim, node, name, opset->second, inputs,
                            outputs);
  if (!importer)
    return failure(Code::unsupported, "operator {} of opset {} is not supported{}", node.opType,
                   opset->second, knownText(node.opType, "", opset->second));
  if (node.domain.empty() && opset->second < kOldestOpset &&
      !isUnchangedSince(node.opType, opset->second))
    return failure(Code::unsupported,
                   "operator {} of opset {} is not supported: known since opset {}", node.opType,
                   opset->second, kOldestOpset);
  CDL_TRY(importer.checkArity(node));
  bool typed = true;
  for (const Slot& input : inputs) {
    if (input.poisoned) return importer.checkAttributes(node, opset->second);
    if (input.list)
      return reportTypes(badModel("an input is a sequence, expected a tensor"), name, node);
    typed &= input.isAbsent() || place.frame.isTyped(input);
  }
  if (!typed)
    return deferNode(place, node, name, {"a shape that depends on data"}, inputs, outputs);
  return addTyped(place, importer, node, name, inputs, outputs, std::move(known));
}

Status GraphImporter::addTyped(const Place& place, const OperatorImporter& importer,
                               const onnx_io::Node& node, const std::string& name,
                               const std::vector<Slot>& inputs, std::vector<Slot>& outputs,
                               NodeContext::Contents known) {
  const int64_t opset = place.opsets.at(node.domain);
  Frame& frame = place.frame;
  const int index = frame.stageFor(inputs, Slot::From::graph);
  std::vector<Value*> values;
  for (const Slot& input : inputs)
    values.push_back(input.isAbsent() ? nullptr : frame.valueAt(input, index));
  Builder& builder = frame.stage(index).builder;
  builder.begin(name);
  std::optional<onnx_io::Node> raised;
  if (node.domain.empty() && opset == 6)
    CDL_TRY(raiseOpset6(builder, raised.emplace(node), values));
  NodeContext context(builder, raised ? *raised : node, static_cast<int>(opset), std::move(values),
                      std::move(known));
  context.randomSeed = context_.options.randomSeed;
  const Status status = importer.import(context);
  disputed_ |= context.hasDisputedExtents();
  if (!status && !context.trims().empty())
    return deferTrims(place, name, context, index, status.message(), outputs);
  if (!status) {
    Deferral deferral{.why = status.message(), .known = context.known()};
    for (const size_t i : context.demandedInputs())
      if (i < inputs.size() && !inputs[i].isConstant()) deferral.frozen.insert(i);
    deferral.content.value = context.demanded();
    deferral.content.frame = &frame;
    deferral.content.stage = index;
    if (status.code() != Code::unsupported || (deferral.frozen.empty() && !deferral.content.value))
      return reportTypes(status, name, node);
    return deferNode(place, node, name, std::move(deferral), inputs, outputs);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    outputs[i] = {};
    outputs[i].frame = &frame;
    outputs[i].stage = index;
    outputs[i].value = context.outputs()[i];
    // The model's names for values are the ones that the user knows.
    if (context.wants(i) && builder.isFresh(outputs[i].value))
      frame.stage(index).graph.rename(outputs[i].value, node.outputs[i]);
  }
  return Status::ok();
}

Status GraphImporter::reportTypes(const Status& status, const std::string& name,
                                  const onnx_io::Node& node) {
  context_.diagnostics.add(status.context(nodeText(name, node)), Reach::block);
  return Status::ok();
}

void GraphImporter::define(Scope& scope, const std::string& name, Slot slot,
                           const std::string& who) {
  if (!scope.define(name, std::move(slot)))
    context_.diagnostics.add(badModel("{}: value '{}' is defined twice", who, name));
}

Result<const onnx_io::Graph*> GraphImporter::graphOf(const onnx_io::Node& node,
                                                     const char* attribute) const {
  const auto found = node.attributes.find(attribute);
  const auto* graph = found == node.attributes.end()
                          ? nullptr
                          : std::get_if<std::shared_ptr<onnx_io::Graph>>(&found->second);
  if (!graph || !*graph) return badModel("has no graph '{}'", attribute);
  if (context_.depth >= kMaxDepth) return badModel("graphs are nested deeper than {}", kMaxDepth);
  return graph->get();
}

std::vector<Slot> GraphImporter::addGraph(const Place& place, const onnx_io::Graph& graph) {
  ++context_.depth;
  for (const onnx_io::Initializer& initializer : graph.initializers)
    addConstant(place.frame, place.scope, initializer.name, initializer.tensor, "initializer");
  addNodes(place, graph.nodes);
  --context_.depth;
  std::vector<Slot> results;
  for (const onnx_io::ValueInfo& output : graph.outputs) {
    Slot result;
    result.poisoned = true;
    if (const Slot* found = place.scope.find(output.name))
      result = *found;
    else
      context_.diagnostics.add(badModel("node '{}': its graph's output '{}' is produced by nothing",
                                        place.prefix.substr(0, place.prefix.size() - 1),
                                        output.name));
    if (!result.poisoned && output.elem != Elem::none && place.frame.isTyped(result))
      context_.diagnostics.add(
          checkOutput(output, place.frame.typeOf(result), {})
              .context(fmt::format("node '{}'", place.prefix.substr(0, place.prefix.size() - 1))),
          Reach::block);
    results.push_back(std::move(result));
  }
  return results;
}

Slot GraphImporter::addOwnNode(const Place& place, const std::string& name, const char* opType,
                               std::vector<Slot> inputs,
                               std::map<std::string, onnx_io::Attribute> attributes) {
  static const Opsets kOpsets = {{"", kOpsetOfOwn}};
  onnx_io::Node node;
  node.opType = opType;
  node.inputs.assign(inputs.size(), "operand");
  node.outputs = {name};
  node.attributes = std::move(attributes);
  const Slot poisoned = Slot::makePoisoned();
  std::vector<Slot> outputs(1, poisoned);
  if (anyPoisoned(inputs)) return poisoned;
  context_.diagnostics.add(
      addOperator({place.frame, place.scope, kOpsets, place.prefix}, node, name, inputs, outputs)
          .context(fmt::format("node '{}' ({})", name, opType)));
  return outputs[0];
}

Slot GraphImporter::addStack(const Place& place, const std::string& name, std::vector<Slot> items) {
  const bool typed =
      std::ranges::all_of(items, [&](const Slot& item) { return place.frame.isTyped(item); });
  if (!typed) {
    runtime::control_flow::Step step;
    step.kind = runtime::control_flow::StepKind::stack;
    step.node = name;
    return place.frame.addStep(
        std::move(step), std::move(items),
        {{name, runtime::control_flow::Slot::Kind::tensor, Elem::none, {}}})[0];
  }
  const Slot zero = place.frame.addConstant(Tensor::of<int64_t>(Elem::i64_, {1}, {0}));
  for (Slot& item : items) item = addOwnNode(place, name, "Unsqueeze", {item, zero});
  return addOwnNode(place, name, "Concat", std::move(items), {{"axis", int64_t(0)}});
}

} // namespace candela::import
