#include "core/compiler/import/graph_importer.h"

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

Walk::Walk(std::shared_ptr<const onnx_io::Model> model, const ImportOptions& options)
    : model_(std::move(model)), options_(options), functions_(*model_, complaints_) {
  frames_.emplace_back(script_.flow, nullptr, options.foldLimitBytes);
  frames_.back().stage(0);
}

Result<Script> Walk::run() {
  // functions that cannot be inlined
  if (!complaints_.empty()) return complaints_.status(model_->path);
  Frame& frame = frames_.front();
  if (!model_->graph.name.empty()) frame.stage(0).graph.name = model_->graph.name;
  addInputs();
  for (const onnx_io::Initializer& initializer : model_->graph.initializers)
    if (!options_.frozen.count(initializer.name) && !isOverridden(initializer.name))
      addConstant(frame, scope_, initializer.name, initializer.tensor, "initializer");
  addFrozen();
  std::vector<Slot> outputs;
  if (checkOpset(model_->opsets, "")) {
    addNodes({frame, scope_, model_->opsets, ""}, model_->graph.nodes);
    outputs = addOutputs();
  }
  if (!complaints_.empty()) return complaints_.status(model_->path);
  std::vector<std::string> names;
  for (const onnx_io::ValueInfo& output : model_->graph.outputs) names.push_back(output.name);
  return finish(outputs, std::move(names));
}

void Walk::addInputs() {
  const auto shapes = bindInputs(model_->graph, options_, complaints_);
  std::set<std::string> seen, initialized;
  for (const onnx_io::Initializer& initializer : model_->graph.initializers)
    if (!isOverridden(initializer.name)) initialized.insert(initializer.name);
  for (const onnx_io::ValueInfo& input : model_->graph.inputs) {
    if (!seen.insert(input.name).second || input.name.empty()) {
      complaints_.add(badModel("input '{}' is {}", input.name,
                               input.name.empty() ? "without a name" : "declared twice"));
      continue;
    }
    if (options_.frozen.count(input.name) || initialized.count(input.name)) continue;
    const auto shape = shapes.find(input.name);
    Slot slot;
    slot.frame = &frames_.front();
    if (shape != shapes.end()) {
      slot = slot.frame->addParam(input.name, {input.elem, shape->second});
    } else if (options_.bindAtRun && complaints_.empty()) {
      slot.run = script_.flow.addSlot(openInput(input));
    } else {
      slot.poisoned = true;
    }
    if (!slot.poisoned) script_.flow.inputs.push_back(slot.run);
    define(scope_, input.name, slot, fmt::format("input '{}'", input.name));
  }
}

void Walk::addFrozen() {
  for (const auto& [name, tensor] : options_.frozen) {
    const auto input = std::ranges::find(model_->graph.inputs, name, &onnx_io::ValueInfo::name);
    if (input == model_->graph.inputs.end()) {
      complaints_.add(badArgument("frozen input '{}': no such input in the model", name));
      continue;
    }
    if (!isDeclared(*input, {tensor.elem, tensor.dims}))
      complaints_.add(badArgument("frozen input '{}' is {} but the model declares {}", name,
                                  tensor.typeText(), declaredText(*input)));
    addConstant(frames_.front(), scope_, name, tensor, "input");
  }
}

void Walk::addConstant(Frame& frame, Scope& scope, const std::string& name, const Tensor& tensor,
                       const char* role) {
  const Slot slot = constantSlot(frame, tensor);
  frame.stage(0).graph.rename(slot.value, name);
  define(scope, name, slot, fmt::format("{} '{}'", role, name));
}

std::vector<Slot> Walk::addOutputs() {
  std::set<std::string> seen;
  std::vector<Slot> outputs;
  if (model_->graph.outputs.empty()) complaints_.add(badModel("the graph has no outputs"));
  for (const onnx_io::ValueInfo& output : model_->graph.outputs) {
    if (!seen.insert(output.name).second)
      complaints_.add(badModel("output '{}' is declared twice", output.name));
    const Slot* found = scope_.find(output.name);
    if (!found) complaints_.add(badModel("output '{}' is produced by nothing", output.name));
    if (!found || found->poisoned) continue;
    if (frames_.front().isTyped(*found))
      complaints_.add(checkOutput(output, frames_.front().typeOf(*found), options_.dims));
    outputs.push_back(*found);
  }
  return outputs;
}

Status Walk::checkOutput(const onnx_io::ValueInfo& declared, const graph::TensorType& inferred,
                         const std::map<std::string, int64_t>& named) const {
  if (disputed_ && declared.elem != Elem::none && isDeclaredRank(declared, inferred))
    return Status::ok();
  return checkDeclared(declared, inferred, named);
}

bool Walk::checkOpset(const Opsets& opsets, const std::string& who) {
  const auto opset = opsets.find("");
  if (opset == opsets.end()) return true; // complained about where it is needed
  // Older opsets are judged operator by operator.
  if (opset->second >= 1 && opset->second <= kNewestOpset) return true;
  complaints_.add(failure(Code::unsupported, "{}opset {} is outside {} to {}", who, opset->second,
                          kOldestOpset, kNewestOpset));
  return false;
}

void Walk::addNodes(const Place& place, const std::vector<onnx_io::Node>& nodes) {
  const std::string& prefix = place.prefix;
  Order order = topologicalOrder(nodes);
  if (!order.cycle.empty()) {
    std::string chain;
    for (size_t index : order.cycle)
      chain += fmt::format("'{}{}' -> ", prefix, nodeName(nodes[index], index));
    complaints_.add(badModel("cyclic or out of order: {}'{}{}'", chain, prefix,
                             nodeName(nodes[order.cycle.front()], order.cycle.front())));
    // What hangs on the cycle has no types, but may have more to complain about.
    Slot poisoned;
    poisoned.poisoned = true;
    for (size_t index : order.stuck) {
      const onnx_io::Node& node = nodes[index];
      const std::string name = prefix + nodeName(node, index);
      std::vector<Slot> inputs(node.inputs.size(), poisoned), outputs;
      if (!functions_.find(node))
        complaints_.add(
            addOperator(place, node, name, inputs, outputs).context(nodeText(name, node)));
    }
    for (size_t index : order.stuck)
      for (const std::string& output : nodes[index].outputs)
        if (!output.empty()) place.scope.define(output, poisoned);
  }
  for (size_t index : order.nodes) {
    const onnx_io::Node& node = nodes[index];
    const std::string name = prefix + nodeName(node, index);
    if (++nodes_ > kMaxNodes) {
      if (nodes_ == kMaxNodes + 1)
        complaints_.add(
            badModel("node '{}': with its turns and calls the model has more than {} nodes", name,
                     kMaxNodes));
      return;
    }
    if (place.function) {
      addNode(place, bindBody(node, *place.function, *place.call, place.scope), name);
      continue;
    }
    for (const auto& [attribute, reference] : node.attributeRefs)
      complaints_.add(badModel("{}: attribute '{}' refers to '{}', but this is no function",
                               nodeText(name, node), attribute, reference));
    addNode(place, node, name);
  }
}

void Walk::addNode(const Place& place, const onnx_io::Node& node, const std::string& name,
                   Step::Contents known) {
  const std::string who = nodeText(name, node);
  Slot poisoned;
  poisoned.poisoned = true;
  std::vector<Slot> inputs, outputs(node.outputs.size(), poisoned);
  for (const std::string& input : node.inputs) {
    if (input.empty()) {
      inputs.emplace_back();
      continue;
    }
    const Slot* found = place.scope.find(input);
    if (!found) complaints_.add(badModel("{}: input '{}' is produced by nothing", who, input));
    inputs.push_back(found ? *found : poisoned);
  }
  const onnx_io::Function* function = functions_.find(node);
  complaints_.add((function ? inlineCall(node, name, *function, inputs, outputs, place.frame)
                            : addOperator(place, node, name, inputs, outputs, std::move(known)))
                      .context(who));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    if (outputs[i].poisoned && &place.scope == &scope_) outputs[i] = standIn(node.outputs[i]);
    define(place.scope, node.outputs[i], outputs[i], who);
  }
}

/// For a value that has been complained about: where the model declares its type, what reads it can
/// be judged further. Floats only, as integers may be shapes, of which a declaration says nothing.
Slot Walk::standIn(const std::string& name) {
  if (declared_.empty())
    for (const onnx_io::ValueInfo& value : model_->graph.values)
      declared_.emplace(value.name, &value);
  const auto found = declared_.find(name);
  Slot slot;
  slot.poisoned = true;
  if (complaints_.empty() || found == declared_.end() || !found->second->hasShape ||
      !isFloat(found->second->elem))
    return slot;
  Shape shape;
  for (const onnx_io::Dim& dim : found->second->dims) {
    const auto bound = dim.value < 0 ? options_.dims.find(dim.name) : options_.dims.end();
    shape.push_back(bound == options_.dims.end() ? dim.value : bound->second);
  }
  if (std::ranges::any_of(shape, [](int64_t dim) { return dim < 0; }) || !elementCount(shape))
    return slot;
  return frames_.front().addParam(name, {found->second->elem, shape});
}

Status Walk::inlineCall(const onnx_io::Node& node, const std::string& name,
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

Status Walk::addOperator(const Place& place, const onnx_io::Node& node, const std::string& name,
                         const std::vector<Slot>& inputs, std::vector<Slot>& outputs,
                         Step::Contents known) {
  const auto opset = place.opsets.find(node.domain);
  if (opset == place.opsets.end())
    return badModel("domain '{}' has no opset import",
                    node.domain.empty() ? "ai.onnx" : node.domain);
  for (const auto& add : {&Walk::addControl, &Walk::addList})
    if (const auto status = (this->*add)(place, node, name, inputs, outputs))
      return complainOfTypes(*status, name, node);
  const Importer importer = findImporter(node);
  if (!importer && !node.domain.empty())
    return addCustom(place, node, name, opset->second, inputs, outputs);
  if (!importer)
    return failure(Code::unsupported, "operator {} of opset {} is not supported{}", node.opType,
                   opset->second, knownText(node.opType, "", opset->second));
  if (node.domain.empty() && opset->second < kOldestOpset &&
      !isUnchangedSince(node.opType, opset->second))
    return failure(Code::unsupported,
                   "operator {} of opset {} is not supported: known since opset {}", node.opType,
                   opset->second, kOldestOpset);
  CDL_TRY(importer.checkArity(node));
  Frame& frame = place.frame;
  bool typed = true;
  for (const Slot& input : inputs) {
    if (input.poisoned) return importer.checkAttributes(node, opset->second);
    if (input.list)
      return complainOfTypes(badModel("an input is a sequence, expected a tensor"), name, node);
    typed &= input.isAbsent() || frame.isTyped(input);
  }
  if (!typed) return defer(place, node, name, "a shape that depends on data", inputs, outputs);
  const int index = frame.stageFor(inputs, Slot::From::graph);
  std::vector<Value*> values;
  for (const Slot& input : inputs)
    values.push_back(input.isAbsent() ? nullptr : frame.valueAt(input, index));
  Builder& builder = frame.stage(index).builder;
  builder.begin(name);
  std::optional<onnx_io::Node> raised;
  if (node.domain.empty() && opset->second == 6)
    CDL_TRY(raiseOpset6(builder, raised.emplace(node), values));
  Step step(builder, raised ? *raised : node, static_cast<int>(opset->second), std::move(values),
            std::move(known));
  step.randomSeed = options_.randomSeed;
  const Status status = importer.import(step);
  disputed_ |= step.hasDisputedExtents();
  if (!status) {
    if (!step.trims().empty()) return addTrims(place, name, step, index, status.message(), outputs);
    std::set<size_t> frozen;
    for (const size_t i : step.demandedInputs())
      if (i < inputs.size() && !inputs[i].isConstant()) frozen.insert(i);
    Slot content;
    content.value = step.demanded();
    content.frame = &frame;
    content.stage = index;
    if (status.code() != Code::unsupported || (frozen.empty() && !content.value))
      return complainOfTypes(status, name, node);
    return defer(place, node, name, status.message(), inputs, outputs, frozen, step.known(),
                 content);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    outputs[i] = {};
    outputs[i].frame = &frame;
    outputs[i].stage = index;
    outputs[i].value = step.outputs()[i];
    // The model's names for values are the ones that the user knows.
    if (step.wants(i) && builder.isFresh(outputs[i].value))
      frame.stage(index).graph.rename(outputs[i].value, node.outputs[i]);
  }
  return Status::ok();
}

Status Walk::complainOfTypes(const Status& status, const std::string& name,
                             const onnx_io::Node& node) {
  complaints_.add(status.context(nodeText(name, node)), Reach::block);
  return Status::ok();
}

void Walk::define(Scope& scope, const std::string& name, Slot slot, const std::string& who) {
  if (!scope.define(name, std::move(slot)))
    complaints_.add(badModel("{}: value '{}' is defined twice", who, name));
}

Result<graph::Graph> importModel(const onnx_io::Model& model, const ImportOptions& options) {
  // Nothing of it is kept: a model that needs more than one Graph is refused.
  const std::shared_ptr<const onnx_io::Model> borrowed(std::shared_ptr<const void>(), &model);
  CDL_ASSIGN(Script script, importScript(borrowed, options));
  if (graph::Graph* graph = script.graph()) return std::move(*graph);
  return script.refusal(model.path);
}

} // namespace candela::import
