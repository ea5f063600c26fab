#include "core/compiler/import/dynamic/loop_importer.h"

#include <numeric>

#include "core/compiler/graph/loop.h"
#include "core/compiler/import/dynamic/flow_values.h"
#include "core/compiler/import/graph_importer.h"

namespace candela::import {
namespace {

using SlotKind = runtime::control_flow::Slot::Kind;

// Nodes that a loop may become when it is unrolled.
constexpr int64_t kMostUnrolled = 512;
// Iterations whose numbers stand in a constant.
constexpr int64_t kMostCounted = int64_t(1) << 20;

/// A scan output of as many elements as a run makes; `declared` is what the body says of one of
/// them.
void openScan(runtime::control_flow::Slot& scan, const onnx_io::ValueInfo& declared) {
  if (!scan.isTyped()) {
    if (scan.elem == Elem::none) scan.elem = declared.elem;
    scan.ranked = declared.hasShape && scan.elem != Elem::none;
    scan.dims.clear();
    for (const onnx_io::Dim& dim : declared.dims) scan.dims.push_back(dim.value);
  } else {
    scan.ranked = true;
  }
  scan.kind = SlotKind::tensor;
  scan.dims.insert(scan.dims.begin(), -1);
}

/// Whether a body's condition is the one that it got.
bool isHandedOn(const Slot& result, const Slot& param) {
  return (result.value && result.value == param.value) ||
         (result.run != runtime::control_flow::kNoSlot && result.run == param.run);
}

/// What a body reads of the frames around it, by its slot in the frame of the loop.
std::map<runtime::control_flow::SlotId, Slot> capturesOf(const Place& place, const Frame& body) {
  std::map<runtime::control_flow::SlotId, Slot> captured;
  for (const Slot& capture : body.captures())
    captured.emplace(place.frame.exported(capture), capture);
  return captured;
}

Tensor iterationNumbers(int64_t trips) {
  std::vector<int64_t> numbers(static_cast<size_t>(trips));
  std::iota(numbers.begin(), numbers.end(), 0);
  return Tensor::of(Elem::i64_, {trips}, numbers);
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

/// Widens what the carried values are to what an iteration makes of them. True: that is more than
/// they were.
Result<bool> widenKinds(const onnx_io::Graph& body, const Frame& frame,
                        const std::vector<Slot>& results,
                        std::vector<runtime::control_flow::Slot>& kinds) {
  bool changed = false;
  for (size_t k = 0; k < kinds.size(); ++k) {
    const runtime::control_flow::Slot given = runSlotFor(frame, results[1 + k], kinds[k].name),
                                      next = mergedSlot(kinds[k], given);
    if (next.kind == kinds[k].kind) continue;
    const onnx_io::ValueInfo& declared = body.inputs[2 + k];
    const bool fixed =
        declared.elem != Elem::none && declared.hasShape && kinds[k].isTyped() &&
        std::ranges::all_of(declared.dims, [](const onnx_io::Dim& dim) { return dim.value >= 0; });
    // What may be anything is the run's to judge.
    if ((next.kind == SlotKind::optional && given.kind != SlotKind::optional) ||
        (kinds[k].elem != next.elem && frame.isTyped(results[1 + k])) ||
        (fixed && frame.isTyped(results[1 + k])))
      return badModel("its body turns carried value '{}' from {} to {}", declared.name,
                      kinds[k].typeText(), given.typeText());
    kinds[k] = next;
    changed = true;
  }
  return changed;
}

/// Whether the block is one Graph, of whose values it gives nothing but such.
bool isOneGraph(Frame& frame, const std::vector<Slot>& params, const std::vector<Slot>& results) {
  const Frame::Stage& stage = frame.stage(0);
  const auto isValue = [](const Slot& slot) { return slot.value != nullptr; };
  return frame.stages().size() == 1 && stage.deferred.empty() && stage.steps.empty() &&
         std::ranges::all_of(results, isValue) && std::ranges::all_of(params, isValue);
}

/// A copy of the stage's Graph that gives these values, as the stage stays what it is where a step
/// does it after all. `own`: the copies of its values.
graph::Graph copied(const Frame::Stage& stage, const std::vector<Value*>& given,
                    std::map<const Value*, Value*>& own) {
  graph::Graph whole;
  for (const Frame::Port& port : stage.inputs)
    own[port.value] = whole.addInput(port.value->name, port.value->type);
  for (const auto& node : stage.graph.nodes()) whole.addCopy(*node, own);
  for (const Value* value : given) whole.addOutput(own.at(value), value->name);
  whole.eraseDead();
  return whole;
}

} // namespace

Status LoopImporter::add(const Place& place, const onnx_io::Node& node, const std::string& name,
                         const std::vector<Slot>& inputs, std::vector<Slot>& outputs) {
  CDL_ASSIGN(const onnx_io::Graph* body, graphs_.graphOf(node, "body"));
  CDL_TRY(checkAttributeNames(node, std::array{"body"}));
  const Slot trips = inputs.empty() ? Slot() : inputs[0];
  const Slot condition = inputs.size() < 2 ? Slot() : inputs[1];
  const std::vector<Slot> carried(
      inputs.begin() + static_cast<ptrdiff_t>(std::min<size_t>(2, inputs.size())), inputs.end());
  for (const Slot& scalar : {trips, condition})
    if (!scalar.isAbsent() && place.frame.isTyped(scalar)) {
      const graph::TensorType type = place.frame.typeOf(scalar);
      if (type.count() != 1 || isFloat(type.elem))
        return badModel("its trip count or condition is {}", type.text());
    }
  return addIterations(place, {*body, name, trips, condition, carried}, outputs);
}

Status LoopImporter::addIterations(const Place& place, const Loop& loop,
                                   std::vector<Slot>& outputs) {
  const onnx_io::Graph& body = loop.body;
  const std::vector<Slot>& carried = loop.carried;
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
  CDL_ASSIGN(const bool isUnrolled, tryUnroll(place, loop, outputs));
  return isUnrolled ? Status::ok() : addLoop(place, loop, outputs);
}

Result<bool> LoopImporter::tryUnroll(const Place& place, const Loop& loop,
                                     std::vector<Slot>& outputs) {
  const auto count = knownScalar(loop.trips);
  const auto goOn = loop.condition.isAbsent() ? 1 : knownScalar(loop.condition);
  if (!count || goOn != 1 || *count <= 0 || *count > kMostUnrolled || rolled_.count(&loop.body) ||
      *count * unrolled_ * std::max<int64_t>(countNodes(loop.body), 1) > kMostUnrolled)
    return false;
  const size_t reported = context_.diagnostics.count();
  const int64_t nodes = context_.nodes;
  std::vector<Slot> made(loop.body.outputs.size() - 1);
  unrolled_ *= *count;
  const Result<bool> isUnrolled = unroll(place, loop, *count, made);
  unrolled_ /= *count;
  CDL_ASSIGN(const bool done, isUnrolled);
  if (done && context_.diagnostics.count() == reported) {
    std::copy_n(made.begin(), outputs.size(), outputs.begin());
    return true;
  }
  context_.diagnostics.truncate(reported);
  context_.nodes = nodes; // what was reported is not what follows
  // Once is enough: bodies in bodies that each try again double the work with each level.
  rolled_.insert(&loop.body);
  return false;
}

Result<bool> LoopImporter::unroll(const Place& place, const Loop& loop, int64_t trips,
                                  std::vector<Slot>& outputs) {
  const onnx_io::Graph& body = loop.body;
  const std::string& name = loop.name;
  std::vector<Slot> carried = loop.carried;
  const size_t scans = body.outputs.size() - 1 - carried.size();
  std::vector<std::vector<Slot>> scanned(scans);
  for (int64_t turn = 0; turn < trips; ++turn) {
    Scope scope(&place.scope);
    scope.define(body.inputs[0].name, place.frame.addConstant(Tensor::scalarI64(turn)));
    scope.define(body.inputs[1].name,
                 place.frame.addConstant(Tensor::of<uint8_t>(Elem::bool_, {}, {1})));
    for (size_t k = 0; k < carried.size(); ++k) scope.define(body.inputs[2 + k].name, carried[k]);
    std::vector<Slot> results = graphs_.addGraph(place.within(place.frame, scope, name), body);
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
    // Elements of different types are the run's to report, as its other loops do.
    const auto sameType = [&](const Slot& item) {
      return place.frame.isTyped(item) && place.frame.isTyped(scanned[k][0]) &&
             place.frame.typeOf(item) == place.frame.typeOf(scanned[k][0]);
    };
    if (!std::ranges::all_of(scanned[k], sameType)) return false;
    outputs[carried.size() + k] = graphs_.addStack(place, name, std::move(scanned[k]));
  }
  return true;
}

Status LoopImporter::addLoop(const Place& place, const Loop& loop, std::vector<Slot>& outputs) {
  std::vector<runtime::control_flow::Slot> kinds;
  for (size_t k = 0; k < loop.carried.size(); ++k)
    kinds.push_back(runSlotFor(place.frame, loop.carried[k], loop.body.inputs[2 + k].name));
  for (;;) {
    const std::optional<Body> body = importBody(place, loop, kinds);
    if (!body) return Status::ok();
    // A value whose type changes from one iteration to the next is one that only the run knows; the
    // body is imported again for it.
    CDL_ASSIGN(const bool changed, widenKinds(loop.body, body->frame, body->results, kinds));
    if (changed) continue;
    if (body->trips && *body->trips > 0 && body->isEndless && addNode(place, loop, *body, outputs))
      return Status::ok();
    addStep(place, loop, *body, kinds, outputs);
    return Status::ok();
  }
}

std::optional<LoopImporter::Body>
LoopImporter::importBody(const Place& place, const Loop& loop,
                         const std::vector<runtime::control_flow::Slot>& kinds) {
  const onnx_io::Graph& body = loop.body;
  const std::string& name = loop.name;
  const size_t reported = context_.diagnostics.count();
  Frame& frame = context_.addFrame(&place.frame);
  Scope scope(&place.scope);
  std::vector<Slot> params = {frame.addParam(body.inputs[0].name, {Elem::i64_, Shape()}),
                              frame.addParam(body.inputs[1].name, {Elem::bool_, Shape()})};
  for (const runtime::control_flow::Slot& kind : kinds) {
    if (kind.isTyped()) {
      params.push_back(frame.addParam(kind.name, {kind.elem, kind.dims}));
      continue;
    }
    Slot param;
    param.run = context_.script.flow.addSlot(kind);
    param.frame = &frame;
    params.push_back(param);
  }
  for (size_t i = 0; i < params.size(); ++i)
    graphs_.define(scope, body.inputs[i].name, params[i], fmt::format("node '{}'", name));
  const std::vector<Slot> results = graphs_.addGraph(place.within(frame, scope, name), body);
  if (anyPoisoned(results) || context_.diagnostics.count() != reported) return std::nullopt;

  const auto next = knownScalar(results[0]);
  const bool isEndless = next ? *next != 0 : isHandedOn(results[0], params[1]);
  const auto trips = loop.condition.isAbsent() || knownScalar(loop.condition) == 1
                         ? knownScalar(loop.trips)
                         : std::nullopt;
  return Body{frame, std::move(params), results, trips, isEndless};
}

void LoopImporter::addStep(const Place& place, const Loop& loop, const Body& body,
                           const std::vector<runtime::control_flow::Slot>& kinds,
                           std::vector<Slot>& outputs) {
  const std::vector<Slot>&params = body.params, &results = body.results;
  runtime::control_flow::Step step;
  step.kind = runtime::control_flow::StepKind::loop;
  step.node = loop.name;
  runtime::control_flow::Block& block = step.blocks.emplace_back();
  for (const Slot& param : params) block.params.push_back(param.run);
  for (size_t i = 0; i < results.size(); ++i)
    block.results.push_back(i == 0 && body.isEndless ? params[1].run
                                                     : body.frame.exported(results[i]));
  std::vector<runtime::control_flow::Slot> made = kinds;
  for (size_t i = 1 + kinds.size(); i < results.size(); ++i) {
    runtime::control_flow::Slot scan =
        runSlotFor(body.frame, results[i], loop.body.outputs[i].name);
    if (scan.isTyped() && body.trips && body.isEndless)
      scan.dims.insert(scan.dims.begin(), std::max<int64_t>(*body.trips, 0));
    else
      openScan(scan, loop.body.outputs[i]);
    made.push_back(std::move(scan));
  }
  std::vector<Slot> inputs = {loop.trips, loop.condition};
  inputs.insert(inputs.end(), loop.carried.begin(), loop.carried.end());
  const std::vector<Slot> all =
      place.frame.addStep(std::move(step), std::move(inputs), made, {&body.frame});
  std::copy_n(all.begin(), outputs.size(), outputs.begin());
}

bool LoopImporter::addNode(const Place& place, const Loop& loop, const Body& imported,
                           std::vector<Slot>& outputs) {
  Frame& frame = imported.frame;
  const int64_t trips = *imported.trips;
  const std::vector<Slot>&params = imported.params, &carried = loop.carried;
  if (!isOneGraph(frame, params, imported.results)) return false;
  std::vector<Value*> given;
  for (size_t i = 1; i < imported.results.size(); ++i)
    given.push_back(frame.valueAt(imported.results[i], 0));
  const std::map<runtime::control_flow::SlotId, Slot> captured = capturesOf(place, frame);
  const Frame::Stage& stage = frame.stage(0);
  std::map<const Value*, Value*> own;
  const graph::Graph whole = copied(stage, given, own);

  // The body's inputs in the op's order: carried values, the number of the iteration where it is
  // read, captured values.
  graph::Graph body;
  body.name = loop.name;
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
    operands.push_back(place.frame.addConstant(iterationNumbers(trips)));
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
                                   std::move(body), {loop.name});
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

} // namespace candela::import
