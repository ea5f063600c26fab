// If, Loop and Scan: decided here where that can be, steps of the flow where only a run can.
#include <numeric>

#include "core/compiler/graph/loop.h"
#include "core/compiler/import/graph_importer.h"
#include "core/compiler/import/term.h"

namespace candela::import {
namespace {

// What a loop may become when its turns are written out one after the other.
constexpr int64_t kMostUnrolled = 512;
// Turns whose numbers stand in a constant.
constexpr int64_t kMostCounted = int64_t(1) << 20;

/// An operator of our own, for nodes that are written here: dim 0 goes to `axis`. No model names
/// it.
constexpr const char* kMoveFirst = "\x01MoveFirst";

using Kind = flow::Slot::Kind;

/// What a slot of the run would be for it.
flow::Slot kindOf(const Frame& frame, const Slot& slot, const std::string& name) {
  if (slot.list) return {name, Kind::sequence, Elem::none, {}};
  if (slot.isAbsent()) return {name, Kind::optional, Elem::none, {}};
  if (!slot.value) {
    flow::Slot made = frame.runSlot(slot);
    made.name = name;
    return made;
  }
  return {name, Kind::typed, slot.value->type.elem, slot.value->type.shape()};
}

bool isTensor(const flow::Slot& slot) {
  return slot.kind == Kind::typed || slot.kind == Kind::tensor;
}

/// What holds either.
flow::Slot merged(const flow::Slot& a, const flow::Slot& b) {
  flow::Slot made = a;
  if (isTensor(a) && isTensor(b)) {
    if (a.kind == b.kind && a.elem == b.elem && a.dims == b.dims) return made;
    made.kind = Kind::tensor;
    made.elem = a.elem == b.elem ? a.elem : Elem::none;
  } else if (a.kind != b.kind) {
    made.kind = Kind::optional;
  }
  return made;
}

/// A scan output of as many elements as a run makes; `declared` is what the body says of one of
/// them.
void openScan(flow::Slot& scan, const onnx_io::ValueInfo& declared) {
  if (!scan.isTyped()) {
    if (scan.elem == Elem::none) scan.elem = declared.elem;
    scan.ranked = declared.hasShape && scan.elem != Elem::none;
    scan.dims.clear();
    for (const onnx_io::Dim& dim : declared.dims) scan.dims.push_back(dim.value);
  } else {
    scan.ranked = true;
  }
  scan.kind = Kind::tensor;
  scan.dims.insert(scan.dims.begin(), -1);
}

bool anyPoisoned(const std::vector<Slot>& slots) {
  return std::ranges::any_of(slots, [](const Slot& slot) { return slot.poisoned; });
}

/// The only element of a constant of bool or an integer; nullopt when it is none.
std::optional<int64_t> knownScalar(const Slot& slot) {
  if (!slot.isConstant() || slot.value->type.count() != 1) return std::nullopt;
  const auto ints = Builder::knownInts(slot.value);
  return ints ? std::optional(ints->front()) : std::nullopt;
}

/// Whether a body's condition is the one that it got.
bool isHandedOn(const Slot& result, const Slot& param) {
  return (result.value && result.value == param.value) ||
         (result.run != flow::kNoSlot && result.run == param.run);
}

int64_t countNodes(const onnx_io::Graph& graph) {
  int64_t count = 0;
  for (const onnx_io::Node& node : graph.nodes) {
    ++count;
    for (const auto& [name, attribute] : node.attributes)
      if (const auto* inner = std::get_if<std::shared_ptr<onnx_io::Graph>>(&attribute);
          inner && *inner)
        count += countNodes(**inner);
  }
  return count;
}

template <typename T>
Result<T> attributeOf(const onnx_io::Node& node, const char* name, T fallback) {
  const auto found = node.attributes.find(name);
  if (found == node.attributes.end()) return fallback;
  if (const T* value = std::get_if<T>(&found->second)) return *value;
  return badModel("attribute '{}' has a wrong type", name);
}

Status checkNames(const onnx_io::Node& node, std::span<const char* const> names) {
  for (const auto& [name, value] : node.attributes)
    if (std::ranges::find(names, name) == names.end())
      return badModel("attribute '{}' is unknown to {}", name, node.opType);
  return Status::ok();
}

} // namespace

std::span<const char* const> controlOperators() {
  static constexpr const char* kNames[] = {"If", "Loop", "Scan"};
  return kNames;
}

std::optional<Status> Walk::addControl(const Place& place, const onnx_io::Node& node,
                                       const std::string& name, const std::vector<Slot>& inputs,
                                       std::vector<Slot>& outputs) {
  if (!node.domain.empty()) return std::nullopt;
  const auto add = node.opType == "If"         ? &Walk::addIf
                   : node.opType == "Loop"     ? &Walk::addLoop
                   : node.opType == "Scan"     ? &Walk::addScan
                   : node.opType == kMoveFirst ? &Walk::moveFirst
                                               : nullptr;
  if (!add) return std::nullopt;
  if (anyPoisoned(inputs)) return Status::ok();
  return (this->*add)(place, node, name, inputs, outputs);
}

Result<const onnx_io::Graph*> Walk::graphOf(const onnx_io::Node& node,
                                            const char* attribute) const {
  const auto found = node.attributes.find(attribute);
  const auto* graph = found == node.attributes.end()
                          ? nullptr
                          : std::get_if<std::shared_ptr<onnx_io::Graph>>(&found->second);
  if (!graph || !*graph) return badModel("has no graph '{}'", attribute);
  if (depth_ >= kMaxDepth) return badModel("graphs are nested deeper than {}", kMaxDepth);
  return graph->get();
}

std::vector<Slot> Walk::addGraph(const Place& place, const onnx_io::Graph& graph) {
  ++depth_;
  for (const onnx_io::Initializer& initializer : graph.initializers)
    addConstant(place.frame, place.scope, initializer.name, initializer.tensor, "initializer");
  addNodes(place, graph.nodes);
  --depth_;
  std::vector<Slot> results;
  for (const onnx_io::ValueInfo& output : graph.outputs) {
    Slot result;
    result.poisoned = true;
    if (const Slot* found = place.scope.find(output.name))
      result = *found;
    else
      complaints_.add(badModel("node '{}': its graph's output '{}' is produced by nothing",
                               place.prefix.substr(0, place.prefix.size() - 1), output.name));
    if (!result.poisoned && output.elem != Elem::none && place.frame.isTyped(result))
      complaints_.add(
          checkOutput(output, place.frame.typeOf(result), {})
              .context(fmt::format("node '{}'", place.prefix.substr(0, place.prefix.size() - 1))),
          Reach::block);
    results.push_back(std::move(result));
  }
  return results;
}

Slot Walk::synthesized(const Place& place, const std::string& name, const char* opType,
                       std::vector<Slot> inputs,
                       std::map<std::string, onnx_io::Attribute> attributes) {
  static const Opsets kOpsets = {{"", kOpsetOfOwn}};
  onnx_io::Node node;
  node.opType = opType;
  node.inputs.assign(inputs.size(), "operand");
  node.outputs = {name};
  node.attributes = std::move(attributes);
  Slot poisoned;
  poisoned.poisoned = true;
  std::vector<Slot> outputs(1, poisoned);
  if (anyPoisoned(inputs)) return poisoned;
  complaints_.add(
      addOperator({place.frame, place.scope, kOpsets, place.prefix}, node, name, inputs, outputs)
          .context(fmt::format("node '{}' ({})", name, opType)));
  return outputs[0];
}

Status Walk::addIf(const Place& place, const onnx_io::Node& node, const std::string& name,
                   const std::vector<Slot>& inputs, std::vector<Slot>& outputs) {
  CDL_ASSIGN(const onnx_io::Graph* thenGraph, graphOf(node, "then_branch"));
  CDL_ASSIGN(const onnx_io::Graph* elseGraph, graphOf(node, "else_branch"));
  CDL_TRY(checkNames(node, std::array{"then_branch", "else_branch"}));
  if (inputs.size() != 1 || inputs[0].isAbsent())
    return badModel("has {} inputs, expected 1", inputs.size());
  const auto checkBranch = [&](const onnx_io::Graph& graph) -> Status {
    if (graph.outputs.size() < outputs.size())
      return badModel("has {} outputs but a branch gives {}", outputs.size(), graph.outputs.size());
    if (!graph.inputs.empty())
      return badModel("a branch has {} inputs, expected none", graph.inputs.size());
    return Status::ok();
  };
  if (place.frame.isTyped(inputs[0]))
    if (const graph::TensorType type = place.frame.typeOf(inputs[0]);
        type.elem != Elem::bool_ || type.count() != 1)
      return badModel("the condition is {}, expected one bool", type.text());
  if (const auto condition = knownScalar(inputs[0])) {
    const onnx_io::Graph& taken = *condition ? *thenGraph : *elseGraph;
    CDL_TRY(checkBranch(taken));
    Scope scope(&place.scope);
    const std::vector<Slot> results = addGraph(place.within(place.frame, scope, name), taken);
    std::copy_n(results.begin(), outputs.size(), outputs.begin());
    return Status::ok();
  }
  for (const onnx_io::Graph* graph : {thenGraph, elseGraph}) CDL_TRY(checkBranch(*graph));
  std::vector<Branch> branches;
  for (const onnx_io::Graph* graph : {thenGraph, elseGraph})
    branches.push_back(addBranch(place, *graph, name, outputs.size()));
  return addBranches(place, node, name, branches, inputs[0], outputs);
}

Walk::Branch Walk::addBranch(const Place& place, const onnx_io::Graph& graph,
                             const std::string& name, size_t outputs) {
  const size_t complaints = complaints_.count();
  Branch branch;
  branch.body = &frames_.emplace_back(script_.flow, &place.frame, options_.foldLimitBytes);
  branch.body->stage(0);
  Scope scope(&place.scope);
  branch.results = addGraph(place.within(*branch.body, scope, name), graph);
  branch.results.resize(outputs);
  if (!complaints_.onlyOfBlock(complaints)) return branch;
  branch.failed = complaints_.take(complaints);
  const Status failed = branch.failed.status("");
  flow::Step step;
  step.kind = flow::StepKind::fail;
  step.node = name;
  step.why = failed.message();
  step.unsupported = failed.code() == Code::unsupported;
  branch.body = &frames_.emplace_back(script_.flow, &place.frame, options_.foldLimitBytes);
  branch.body->stage(0);
  branch.body->addStep(std::move(step), {}, {});
  return branch;
}

Status Walk::addBranches(const Place& place, const onnx_io::Node& node, const std::string& name,
                         const std::vector<Branch>& branches, const Slot& condition,
                         std::vector<Slot>& outputs) {
  const auto hasFailed = [](const Branch& branch) { return !branch.failed.empty(); };
  const auto isPoisoned = [&](const Branch& branch) {
    return !hasFailed(branch) && anyPoisoned(branch.results);
  };
  if (std::ranges::all_of(branches, hasFailed) || std::ranges::any_of(branches, isPoisoned)) {
    for (const Branch& branch : branches) complaints_.add(branch.failed);
    return Status::ok();
  }
  flow::Step step;
  step.kind = flow::StepKind::branch;
  step.node = name;
  std::vector<Frame*> bodies;
  std::vector<flow::Slot> kinds;
  for (const Branch& branch : branches) {
    flow::Block& block = step.blocks.emplace_back();
    bodies.push_back(branch.body);
    block.results.assign(hasFailed(branch) ? outputs.size() : 0, flow::kNoSlot);
    for (size_t i = block.results.size(); i < outputs.size(); ++i) {
      const flow::Slot kind = kindOf(*branch.body, branch.results[i], node.outputs[i]);
      if (kinds.size() <= i)
        kinds.push_back(kind);
      else if ((kind.elem != Elem::none && kinds[i].elem != Elem::none &&
                kind.elem != kinds[i].elem) ||
               (kind.kind == Kind::sequence && kinds[i].isTyped()) ||
               (kinds[i].kind == Kind::sequence && kind.isTyped()))
        return badModel("output '{}' is {} in one branch and {} in the other", node.outputs[i],
                        kinds[i].typeText(), kind.typeText());
      else
        kinds[i] = merged(kinds[i], kind);
      block.results.push_back(branch.body->exported(branch.results[i]));
    }
  }
  outputs = place.frame.addStep(std::move(step), {condition}, kinds, bodies);
  return Status::ok();
}

Slot Walk::stacked(const Place& place, const std::string& name, std::vector<Slot> items) {
  const bool typed =
      std::ranges::all_of(items, [&](const Slot& item) { return place.frame.isTyped(item); });
  if (!typed) {
    flow::Step step;
    step.kind = flow::StepKind::stack;
    step.node = name;
    return place.frame.addStep(std::move(step), std::move(items),
                               {{name, Kind::tensor, Elem::none, {}}})[0];
  }
  const Slot zero = constantSlot(place.frame, Tensor::of<int64_t>(Elem::i64_, {1}, {0}));
  for (Slot& item : items) item = synthesized(place, name, "Unsqueeze", {item, zero});
  return synthesized(place, name, "Concat", std::move(items), {{"axis", int64_t(0)}});
}

Status Walk::addLoop(const Place& place, const onnx_io::Node& node, const std::string& name,
                     const std::vector<Slot>& inputs, std::vector<Slot>& outputs) {
  CDL_ASSIGN(const onnx_io::Graph* body, graphOf(node, "body"));
  CDL_TRY(checkNames(node, std::array{"body"}));
  const Slot trips = inputs.empty() ? Slot() : inputs[0],
             condition = inputs.size() < 2 ? Slot() : inputs[1];
  const std::vector<Slot> carried(
      inputs.begin() + static_cast<ptrdiff_t>(std::min<size_t>(2, inputs.size())), inputs.end());
  for (const Slot& scalar : {trips, condition})
    if (!scalar.isAbsent() && place.frame.isTyped(scalar)) {
      const graph::TensorType type = place.frame.typeOf(scalar);
      if (type.count() != 1 || isFloat(type.elem))
        return badModel("its trip count or condition is {}", type.text());
    }
  return addTurns(place, *body, name, trips, condition, carried, outputs);
}

Status Walk::addTurns(const Place& place, const onnx_io::Graph& body, const std::string& name,
                      const Slot& trips, const Slot& condition, const std::vector<Slot>& carried,
                      std::vector<Slot>& outputs) {
  if (body.inputs.size() != carried.size() + 2)
    return badModel("its body has {} inputs, expected {} for {} carried values", body.inputs.size(),
                    carried.size() + 2, carried.size());
  if (body.outputs.size() < carried.size() + 1 || body.outputs.size() - 1 < outputs.size())
    return badModel("its body has {} outputs, expected {}", body.outputs.size(),
                    1 + std::max(carried.size(), outputs.size()));
  for (size_t k = 0; k < carried.size(); ++k)
    if (const onnx_io::ValueInfo& input = body.inputs[2 + k];
        input.elem != Elem::none && place.frame.isTyped(carried[k]) &&
        !isDeclared(input, place.frame.typeOf(carried[k])))
      return badModel("carried value '{}' is declared {} in its body but begins as {}", input.name,
                      declaredText(input), place.frame.typeOf(carried[k]).text());
  const auto count = knownScalar(trips), goOn = condition.isAbsent() ? 1 : knownScalar(condition);
  if (count && goOn == 1 && *count > 0 && *count <= kMostUnrolled && !turning_.count(&body) &&
      *count * unrolled_ * std::max<int64_t>(countNodes(body), 1) <= kMostUnrolled) {
    const size_t complaints = complaints_.count();
    const int64_t nodes = nodes_;
    std::vector<Slot> made(body.outputs.size() - 1);
    unrolled_ *= *count;
    const Result<bool> turns = unroll(place, body, name, *count, carried, made);
    unrolled_ /= *count;
    CDL_ASSIGN(const bool done, turns);
    if (done && complaints_.count() == complaints) {
      std::copy_n(made.begin(), outputs.size(), outputs.begin());
      return Status::ok();
    }
    complaints_.truncate(complaints);
    nodes_ = nodes; // what was complained about is not what follows
    // Once is enough: bodies in bodies that each try again double the work with each level.
    turning_.insert(&body);
  }
  return addLoopStep(place, body, name, trips, condition, carried, outputs);
}

Result<bool> Walk::unroll(const Place& place, const onnx_io::Graph& body, const std::string& name,
                          int64_t trips, std::vector<Slot> carried, std::vector<Slot>& outputs) {
  const size_t scans = body.outputs.size() - 1 - carried.size();
  std::vector<std::vector<Slot>> scanned(scans);
  for (int64_t turn = 0; turn < trips; ++turn) {
    Scope scope(&place.scope);
    scope.define(body.inputs[0].name, constantSlot(place.frame, Tensor::scalarI64(turn)));
    scope.define(body.inputs[1].name,
                 constantSlot(place.frame, Tensor::of<uint8_t>(Elem::bool_, {}, {1})));
    for (size_t k = 0; k < carried.size(); ++k) scope.define(body.inputs[2 + k].name, carried[k]);
    std::vector<Slot> results = addGraph(place.within(place.frame, scope, name), body);
    const auto goOn = knownScalar(results[0]);
    if (anyPoisoned(results) || !goOn) return false;
    for (size_t k = 0; k < carried.size(); ++k) carried[k] = results[1 + k];
    for (size_t k = 0; k < scans; ++k) {
      if (results[1 + carried.size() + k].list)
        return badModel("a scan output is a sequence, expected a tensor");
      scanned[k].push_back(results[1 + carried.size() + k]);
    }
    if (!*goOn) break;
  }
  for (size_t k = 0; k < carried.size(); ++k) outputs[k] = carried[k];
  for (size_t k = 0; k < scans; ++k) {
    // Elements of different types are the run's to complain about, as its other loops do.
    const auto sameType = [&](const Slot& item) {
      return place.frame.isTyped(item) && place.frame.isTyped(scanned[k][0]) &&
             place.frame.typeOf(item) == place.frame.typeOf(scanned[k][0]);
    };
    if (!std::ranges::all_of(scanned[k], sameType)) return false;
    outputs[carried.size() + k] = stacked(place, name, std::move(scanned[k]));
  }
  return true;
}

Status Walk::addLoopStep(const Place& place, const onnx_io::Graph& body, const std::string& name,
                         const Slot& trips, const Slot& condition, const std::vector<Slot>& carried,
                         std::vector<Slot>& outputs) {
  std::vector<flow::Slot> kinds;
  for (size_t k = 0; k < carried.size(); ++k)
    kinds.push_back(kindOf(place.frame, carried[k], body.inputs[2 + k].name));
  for (;;) {
    const size_t complaints = complaints_.count();
    Frame& frame = frames_.emplace_back(script_.flow, &place.frame, options_.foldLimitBytes);
    frame.stage(0);
    Scope scope(&place.scope);
    std::vector<Slot> params = {frame.addParam(body.inputs[0].name, {Elem::i64_, Shape()}),
                                frame.addParam(body.inputs[1].name, {Elem::bool_, Shape()})};
    for (const flow::Slot& kind : kinds) {
      if (kind.isTyped()) {
        params.push_back(frame.addParam(kind.name, {kind.elem, kind.dims}));
        continue;
      }
      Slot param;
      param.run = script_.flow.addSlot(kind);
      param.frame = &frame;
      params.push_back(param);
    }
    for (size_t i = 0; i < params.size(); ++i)
      define(scope, body.inputs[i].name, params[i], fmt::format("node '{}'", name));
    const std::vector<Slot> results = addGraph(place.within(frame, scope, name), body);
    if (anyPoisoned(results) || complaints_.count() != complaints) return Status::ok();
    // A value whose type changes over the turns is one that only the run knows; the body is
    // imported again for it.
    bool changed = false;
    for (size_t k = 0; k < kinds.size(); ++k) {
      const flow::Slot given = kindOf(frame, results[1 + k], kinds[k].name),
                       next = merged(kinds[k], given);
      if (next.kind == kinds[k].kind) continue;
      const onnx_io::ValueInfo& declared = body.inputs[2 + k];
      const bool fixed = declared.elem != Elem::none && declared.hasShape && kinds[k].isTyped() &&
                         std::ranges::all_of(
                             declared.dims, [](const onnx_io::Dim& dim) { return dim.value >= 0; });
      // What may be anything is the run's to judge.
      if ((next.kind == Kind::optional && given.kind != Kind::optional) ||
          (kinds[k].elem != next.elem && frame.isTyped(results[1 + k])) ||
          (fixed && frame.isTyped(results[1 + k])))
        return badModel("its body turns carried value '{}' from {} to {}", declared.name,
                        kinds[k].typeText(), given.typeText());
      kinds[k] = next;
      changed = true;
    }
    if (changed) continue;
    const auto next = knownScalar(results[0]);
    const bool endless = next ? *next != 0 : isHandedOn(results[0], params[1]);
    const auto count =
        condition.isAbsent() || knownScalar(condition) == 1 ? knownScalar(trips) : std::nullopt;
    if (count && *count > 0 && endless &&
        addLoopNode(place, frame, name, *count, params, carried, results, outputs))
      return Status::ok();
    flow::Step step;
    step.kind = flow::StepKind::loop;
    step.node = name;
    flow::Block& block = step.blocks.emplace_back();
    for (const Slot& param : params) block.params.push_back(param.run);
    for (size_t i = 0; i < results.size(); ++i)
      block.results.push_back(i == 0 && endless ? params[1].run : frame.exported(results[i]));
    std::vector<flow::Slot> made = kinds;
    for (size_t i = 1 + kinds.size(); i < results.size(); ++i) {
      flow::Slot scan = kindOf(frame, results[i], body.outputs[i].name);
      if (scan.isTyped() && count && endless)
        scan.dims.insert(scan.dims.begin(), std::max<int64_t>(*count, 0));
      else
        openScan(scan, body.outputs[i]);
      made.push_back(std::move(scan));
    }
    std::vector<Slot> inputs = {trips, condition};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    const std::vector<Slot> all =
        place.frame.addStep(std::move(step), std::move(inputs), made, {&frame});
    std::copy_n(all.begin(), outputs.size(), outputs.begin());
    return Status::ok();
  }
}

bool Walk::addLoopNode(const Place& place, Frame& frame, const std::string& name, int64_t trips,
                       const std::vector<Slot>& params, const std::vector<Slot>& carried,
                       const std::vector<Slot>& results, std::vector<Slot>& outputs) {
  Frame::Stage& stage = frame.stage(0);
  if (frame.stages().size() > 1 || !stage.deferred.empty() || !stage.steps.empty()) return false;
  if (!std::ranges::all_of(results, [](const Slot& result) { return result.value != nullptr; }))
    return false;
  for (const Slot& param : params)
    if (!param.value) return false;
  std::vector<Value*> given;
  for (size_t i = 1; i < results.size(); ++i) given.push_back(frame.valueAt(results[i], 0));
  std::map<flow::SlotId, Slot> captured;
  for (const Slot& capture : frame.captures())
    captured.emplace(place.frame.exported(capture), capture);
  // A copy, as the stage stays what it is where a step does it after all.
  graph::Graph whole;
  std::map<const Value*, Value*> own;
  for (const Frame::Port& port : stage.inputs)
    own[port.value] = whole.addInput(port.value->name, port.value->type);
  for (const auto& node : stage.graph.nodes()) whole.addCopy(*node, own);
  for (const Value* value : given) whole.addOutput(own.at(value), value->name);
  whole.eraseDead();

  // The body's inputs in the op's order: carried, the turn's number where it is read, captured.
  graph::Graph body;
  body.name = name;
  graph::LoopForm form;
  form.trips = trips;
  form.carried = carried.size();
  std::map<const Value*, Value*> copies;
  std::vector<Slot> operands = carried;
  const auto addInput = [&](const Value* value) {
    copies[value] = body.addInput(value->name, value->type);
  };
  for (size_t k = 0; k < carried.size(); ++k) addInput(own.at(params[2 + k].value));
  if (whole.isUsed(own.at(params[0].value))) {
    if (trips > kMostCounted) return false;
    std::vector<int64_t> turns(static_cast<size_t>(trips));
    std::iota(turns.begin(), turns.end(), 0);
    operands.push_back(constantSlot(place.frame, Tensor::of(Elem::i64_, {trips}, turns)));
    form.scanned = 1;
    addInput(own.at(params[0].value));
  }
  for (const Frame::Port& port : stage.inputs) {
    const auto found = captured.find(port.slot);
    if (found == captured.end() || !whole.isUsed(own.at(port.value))) continue;
    addInput(own.at(port.value));
    operands.push_back(found->second);
  }
  copies[own.at(params[1].value)] = body.addConstant(Tensor::of<uint8_t>(Elem::bool_, {}, {1}));
  for (const auto& node : whole.nodes()) body.addCopy(*node, copies);
  for (const Value* output : whole.outputs()) body.addOutput(copies.at(output), output->name);
  body.eraseDead();

  const int index = place.frame.stageFor(operands, Slot::From::graph);
  std::vector<Value*> values;
  for (const Slot& operand : operands) values.push_back(place.frame.valueAt(operand, index));
  const auto node = graph::addLoop(place.frame.stage(index).graph, form, std::move(values),
                                   std::move(body), {name});
  if (!node) return false; // nested too deep: a step does it
  Slot made;
  made.frame = &place.frame;
  made.stage = index;
  for (size_t i = 0; i < outputs.size(); ++i) {
    made.value = (*node)->result(i);
    outputs[i] = made;
  }
  return true;
}

Slot Walk::zeros(const Place& place, const std::string& name, Elem elem, const Shape& shape) {
  const auto zero = Tensor::zeros(elem, {1});
  const Slot dims = constantSlot(
      place.frame, Tensor::of<int64_t>(Elem::i64_, {static_cast<int64_t>(shape.size())}, shape));
  return synthesized(place, name, "ConstantOfShape", {dims}, {{"value", *zero}});
}

Status Walk::moveFirst(const Place& place, const onnx_io::Node& node, const std::string& name,
                       const std::vector<Slot>& inputs, std::vector<Slot>& outputs) {
  CDL_ASSIGN(int64_t axis, attributeOf<int64_t>(node, "axis", 0));
  if (!place.frame.isTyped(inputs[0]))
    return defer(place, node, name, "a shape that depends on data", inputs, outputs);
  const int rank = place.frame.typeOf(inputs[0]).rank();
  CDL_ASSIGN(axis, resolveAxis(axis, rank));
  std::vector<int64_t> order;
  for (int i = 1; i < rank; ++i) order.push_back(i);
  order.insert(order.begin() + axis, 0);
  outputs[0] = synthesized(place, name, "Transpose", {inputs[0]}, {{"perm", order}});
  return Status::ok();
}

Status Walk::addScan(const Place& place, const onnx_io::Node& node, const std::string& name,
                     const std::vector<Slot>& inputs, std::vector<Slot>& outputs) {
  CDL_ASSIGN(const onnx_io::Graph* body, graphOf(node, "body"));
  if (place.opsets.at("") < 9) return addBatchedScan(place, node, name, inputs, outputs);
  CDL_TRY(checkNames(node, std::array{"body", "num_scan_inputs", "scan_input_axes",
                                      "scan_input_directions", "scan_output_axes",
                                      "scan_output_directions"}));
  using Ints = std::vector<int64_t>;
  CDL_ASSIGN(const int64_t scanned, attributeOf<int64_t>(node, "num_scan_inputs", 0));
  if (scanned < 1 || scanned > static_cast<int64_t>(inputs.size()))
    return badModel("num_scan_inputs is {} for {} inputs", scanned, inputs.size());
  const size_t states = inputs.size() - static_cast<size_t>(scanned);
  if (body->inputs.size() != inputs.size())
    return badModel("its body has {} inputs, expected {}", body->inputs.size(), inputs.size());
  if (body->outputs.size() < states || body->outputs.size() < outputs.size())
    return badModel("its body has {} outputs, expected {}", body->outputs.size(),
                    std::max(states, outputs.size()));
  const size_t scans = body->outputs.size() - states;
  const auto listOf = [&](const char* attribute, size_t count) -> Result<Ints> {
    CDL_ASSIGN(Ints list, attributeOf<Ints>(node, attribute, Ints(count, 0)));
    if (list.size() != count)
      return badModel("{} has {} entries, expected {}", attribute, list.size(), count);
    return list;
  };
  CDL_ASSIGN(const Ints inAxes, listOf("scan_input_axes", static_cast<size_t>(scanned)));
  CDL_ASSIGN(const Ints inBackward, listOf("scan_input_directions", static_cast<size_t>(scanned)));
  CDL_ASSIGN(const Ints outAxes, listOf("scan_output_axes", scans));
  CDL_ASSIGN(const Ints outBackward, listOf("scan_output_directions", scans));
  for (const Slot& input : inputs)
    if (input.isAbsent() || input.list) return badModel("an input is no tensor");
  if (!std::ranges::all_of(inputs, [&](const Slot& input) { return place.frame.isTyped(input); }))
    return defer(place, node, name, "a shape that depends on data", inputs, outputs);

  // A Loop whose body takes its slices first.
  Scope scope(&place.scope);
  onnx_io::Graph turns = *body;
  const std::string own = name + "#";
  turns.inputs.clear();
  for (const char* port : {"turn", "condition"}) turns.inputs.emplace_back().name = own + port;
  for (size_t k = 0; k < states; ++k) turns.inputs.push_back(body->inputs[k]);
  std::vector<onnx_io::Node> slices;
  const auto addSlice = [&](const char* opType, std::vector<std::string> reads,
                            const std::string& gives,
                            std::map<std::string, onnx_io::Attribute> attributes) {
    onnx_io::Node slice;
    slice.name = gives;
    slice.opType = opType;
    slice.inputs = std::move(reads);
    slice.outputs = {gives};
    slice.attributes = std::move(attributes);
    slices.push_back(std::move(slice));
  };
  std::optional<int64_t> trips;
  for (size_t k = 0; k < static_cast<size_t>(scanned); ++k) {
    const graph::TensorType type = place.frame.typeOf(inputs[states + k]);
    CDL_ASSIGN(const int64_t axis, resolveAxis(inAxes[k], type.rank()));
    const int64_t extent = type.dim(static_cast<int>(axis));
    if (trips && *trips != extent)
      return badModel("scan input {} has {} elements along axis {}, the ones before have {}", k,
                      extent, axis, *trips);
    trips = extent;
    const std::string whole = fmt::format("{}{}", own, k);
    // Without a turn the body has its types from slices that are never taken.
    Shape present = type.shape();
    present[static_cast<size_t>(axis)] = std::max<int64_t>(extent, 1);
    scope.define(whole, extent ? inputs[states + k] : zeros(place, name, type.elem, present));
    std::string index = own + "turn";
    if (inBackward[k]) {
      scope.define(whole + "last", constantSlot(place.frame, Tensor::scalarI64(extent - 1)));
      addSlice("Sub", {whole + "last", index}, whole + "back", {});
      index = whole + "back";
    }
    addSlice("Gather", {whole, index}, body->inputs[states + k].name, {{"axis", axis}});
  }
  turns.nodes.insert(turns.nodes.begin(), slices.begin(), slices.end());
  onnx_io::ValueInfo condition;
  condition.name = own + "condition";
  turns.outputs.insert(turns.outputs.begin(), condition);
  const std::vector<Slot> carried(inputs.begin(), inputs.begin() + static_cast<ptrdiff_t>(states));
  std::vector<Slot> made(body->outputs.size());
  for (Slot& slot : made) slot.poisoned = true;
  const Place within{place.frame, scope, place.opsets, place.prefix, place.function, place.call};
  CDL_TRY(addTurns(within, turns, name, constantSlot(place.frame, Tensor::scalarI64(*trips)),
                   Slot(), carried, made));
  for (size_t k = 0; k < states; ++k)
    if (place.frame.isTyped(made[k]) &&
        place.frame.typeOf(made[k]) != place.frame.typeOf(carried[k]))
      return badModel("its body turns state '{}' from {} to {}", body->inputs[k].name,
                      place.frame.typeOf(carried[k]).text(), place.frame.typeOf(made[k]).text());
  for (size_t k = 0; k < scans && states + k < outputs.size(); ++k) {
    Slot& scan = made[states + k];
    if (scan.poisoned || (!outBackward[k] && outAxes[k] == 0)) continue;
    const auto one = [&](int64_t value) {
      return constantSlot(place.frame, Tensor::of<int64_t>(Elem::i64_, {1}, {value}));
    };
    if (outBackward[k])
      scan = synthesized(place, name, "Slice", {scan, one(-1), one(INT64_MIN), one(0), one(-1)});
    if (outAxes[k] != 0)
      scan = synthesized(place, name, kMoveFirst, {scan}, {{"axis", outAxes[k]}});
  }
  std::copy_n(made.begin(), outputs.size(), outputs.begin());
  return Status::ok();
}

Status Walk::addBatchedScan(const Place& place, const onnx_io::Node& node, const std::string& name,
                            const std::vector<Slot>& inputs, std::vector<Slot>& outputs) {
  CDL_TRY(checkNames(node, std::array{"body", "num_scan_inputs", "directions"}));
  if (inputs.size() < 2) return badModel("has {} inputs, expected at least 2", inputs.size());
  if (!inputs[0].isAbsent())
    return failure(Code::unsupported, "sequence_lens of opset 8 are not supported");
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (inputs[i].isAbsent() || inputs[i].list) return badModel("an input is no tensor");
    if (!place.frame.isTyped(inputs[i]))
      return defer(place, node, name, "a shape that depends on data", inputs, outputs);
    if (place.frame.typeOf(inputs[i]).rank() == 0 ||
        place.frame.typeOf(inputs[i]).dim(0) != place.frame.typeOf(inputs[1]).dim(0))
      return badModel("input {} is {}, expected {} batches", i,
                      place.frame.typeOf(inputs[i]).text(), place.frame.typeOf(inputs[1]).dim(0));
  }
  static const Opsets kOpsets = {{"", 9}};
  onnx_io::Node one = node;
  one.inputs.erase(one.inputs.begin());
  if (const auto directions = one.attributes.extract("directions"); !directions.empty())
    one.attributes["scan_input_directions"] = directions.mapped();
  std::vector<std::vector<Slot>> gathered(outputs.size());
  for (int64_t b = 0; b < place.frame.typeOf(inputs[1]).dim(0); ++b) {
    std::vector<Slot> batch, made(outputs.size());
    const Slot index = constantSlot(place.frame, Tensor::scalarI64(b));
    for (size_t i = 1; i < inputs.size(); ++i)
      batch.push_back(
          synthesized(place, name, "Gather", {inputs[i], index}, {{"axis", int64_t(0)}}));
    if (anyPoisoned(batch)) return Status::ok();
    CDL_TRY(addScan({place.frame, place.scope, kOpsets, place.prefix, place.function, place.call},
                    one, name, batch, made));
    for (size_t i = 0; i < made.size(); ++i) gathered[i].push_back(made[i]);
    if (anyPoisoned(made)) return Status::ok();
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (gathered[i].empty()) return badModel("it has no batches");
    outputs[i] = stacked(place, name, std::move(gathered[i]));
  }
  return Status::ok();
}

} // namespace candela::import
