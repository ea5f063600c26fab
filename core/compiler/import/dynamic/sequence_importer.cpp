#include "core/compiler/import/dynamic/sequence_importer.h"

#include "core/compiler/import/dynamic/deferred_nodes.h"
#include "core/compiler/import/dynamic/flow_values.h"
#include "core/compiler/import/graph_importer.h"

namespace candela::import {
namespace {

using SlotKind = runtime::control_flow::Slot::Kind;

std::optional<int64_t> knownPosition(const Slot& slot) {
  const auto ints = slot.isConstant() ? Builder::knownInts(slot.value) : std::nullopt;
  return ints && ints->size() == 1 ? std::optional(ints->front()) : std::nullopt;
}

Slot sequenceOf(std::vector<Slot> items) {
  Slot slot;
  slot.list = std::make_shared<std::vector<Slot>>(std::move(items));
  return slot;
}

runtime::control_flow::Slot sequenceSlot(const std::string& name) {
  return {name, SlotKind::sequence, Elem::none, {}};
}

Slot vectorOf(Frame& frame, int64_t value) {
  return frame.addConstant(Tensor::of<int64_t>(Elem::i64_, {1}, {value}));
}

/// A step of the flow that gives one slot.
Slot addStep(Frame& frame, const std::string& node, runtime::control_flow::StepKind kind,
             std::vector<Slot> reads, runtime::control_flow::Slot gives) {
  runtime::control_flow::Step step;
  step.kind = kind;
  step.node = node;
  return frame.addStep(std::move(step), std::move(reads), {std::move(gives)})[0];
}

/// Whether an optional has an element is known at run only.
bool mayBeNothing(const Frame& frame, const Slot& slot) {
  return slot.run != runtime::control_flow::kNoSlot && !slot.value &&
         frame.runSlot(slot).kind == SlotKind::optional;
}

/// 0 where only a run knows it.
int64_t knownLength(const Slot& sequence) {
  return sequence.list ? static_cast<int64_t>(sequence.list->size()) : 0;
}

bool isNoSequence(const Frame& frame, const Slot& slot) {
  return !slot.list && (slot.isAbsent() || frame.isTyped(slot));
}

} // namespace

std::span<const SequenceImporter::Operator> SequenceImporter::operators() {
  using Self = SequenceImporter;
  static constexpr Operator kSequenceOperators[] = {
      {"SequenceConstruct", 1, SIZE_MAX, &Self::addConstruct},
      {"SequenceEmpty", 0, 0, &Self::addEmpty},
      {"SequenceInsert", 2, 3, &Self::addInsert},
      {"SequenceErase", 1, 2, &Self::addErase},
      {"SequenceAt", 2, 2, &Self::addAt},
      {"SequenceLength", 1, 1, &Self::addLength},
      {"SequenceMap", 1, SIZE_MAX, &Self::addMap},
      {"SplitToSequence", 1, 2, &Self::addSplit},
      {"ConcatFromSequence", 1, 1, &Self::addConcat},
      {"Optional", 0, 1, &Self::addOptional},
      {"OptionalHasElement", 0, 1, &Self::addHasElement},
      {"OptionalGetElement", 1, 1, &Self::addGetElement}};
  return kSequenceOperators;
}

std::vector<std::string> sequenceOperators() {
  std::vector<std::string> names;
  for (const SequenceImporter::Operator& op : SequenceImporter::operators())
    names.emplace_back(op.name);
  return names;
}

std::optional<Status> SequenceImporter::add(const Place& place, const onnx_io::Node& node,
                                            const std::string& name,
                                            const std::vector<Slot>& inputs,
                                            std::vector<Slot>& outputs) {
  if (!node.domain.empty() || outputs.empty()) return std::nullopt;
  const auto isList = [&](const Slot& slot) {
    return slot.list || (slot.run != runtime::control_flow::kNoSlot && !slot.value &&
                         place.frame.runSlot(slot).kind >= SlotKind::sequence);
  };
  const auto found =
      std::ranges::find_if(operators(), [&](const Operator& op) { return node.opType == op.name; });
  if (found == operators().end()) {
    if (node.opType != "Identity" || inputs.size() != 1 || !isList(inputs[0])) return std::nullopt;
    outputs[0] = inputs[0];
    return Status::ok();
  }
  size_t given = inputs.size();
  while (given > 0 && node.inputs[given - 1].empty()) --given;
  if (given < found->minInputs || given > found->maxInputs)
    return badModel("has {} inputs, expected at least {}", given, found->minInputs);
  if (anyPoisoned(inputs)) return Status::ok();
  return (this->*found->add)({place, node, name, inputs, outputs});
}

Status SequenceImporter::addEmpty(const Call& call) {
  call.set(sequenceOf({}));
  return Status::ok();
}

Status SequenceImporter::addConstruct(const Call& call) {
  const Frame& frame = call.place.frame;
  const Slot first = call.input(0);
  for (const Slot& input : call.inputs) {
    if (input.isAbsent() || input.list) return badModel("an element is no tensor");
    if (frame.isTyped(input) && frame.isTyped(first) &&
        frame.typeOf(input).elem != frame.typeOf(first).elem)
      return badModel("elements are {} and {}", frame.typeOf(first).text(),
                      frame.typeOf(input).text());
  }
  call.set(sequenceOf(call.inputs));
  return Status::ok();
}

Status SequenceImporter::addOptional(const Call& call) {
  call.set(call.input(0));
  return Status::ok();
}

Status SequenceImporter::addHasElement(const Call& call) {
  Frame& frame = call.place.frame;
  const Slot first = call.input(0);
  if (mayBeNothing(frame, first))
    call.set(addStep(frame, call.name, runtime::control_flow::StepKind::has, {first},
                     {call.node.outputs[0], SlotKind::typed, Elem::bool_, {}}));
  else
    call.set(frame.addConstant(
        Tensor::of<uint8_t>(Elem::bool_, {}, {uint8_t(first.isAbsent() ? 0 : 1)})));
  return Status::ok();
}

Status SequenceImporter::addGetElement(const Call& call) {
  Frame& frame = call.place.frame;
  const Slot first = call.input(0);
  if (first.isAbsent()) return badModel("the optional has no element");
  if (mayBeNothing(frame, first))
    call.set(addStep(frame, call.name, runtime::control_flow::StepKind::get, {first},
                     {call.node.outputs[0], SlotKind::optional, Elem::none, {}}));
  else
    call.set(first);
  return Status::ok();
}

Status SequenceImporter::addSplit(const Call& call) {
  Frame& frame = call.place.frame;
  const Slot first = call.input(0), sizes = call.input(1);
  if (!frame.isTyped(first))
    return deferNode(call.place, call.node, call.name, {"a shape that depends on data"},
                     call.inputs, call.outputs);
  CDL_ASSIGN(int64_t axis, attributeOf<int64_t>(call.node, "axis", 0));
  CDL_ASSIGN(const int64_t keep, attributeOf<int64_t>(call.node, "keepdims", 1));
  const graph::TensorType type = frame.typeOf(first);
  CDL_ASSIGN(axis, resolveAxis(axis, type.rank()));
  const int64_t extent = type.dim(static_cast<int>(axis));
  CDL_ASSIGN(const auto chunks, readChunks(call, extent));
  if (!chunks)
    return deferNode(call.place, call.node, call.name,
                     {.why = "its split is not known when the model is imported", .frozen = {1}},
                     call.inputs, call.outputs);
  int64_t at = 0;
  std::vector<Slot> items;
  for (const int64_t chunk : *chunks) {
    if (chunk < 0 || chunk > extent - at)
      return badModel("split of {} goes beyond {} elements", chunk, extent);
    if (++context_.nodes > kMaxNodes) return badModel("it has more than {} elements", kMaxNodes);
    const std::vector<Slot> operands = {first, vectorOf(frame, at), vectorOf(frame, at + chunk),
                                        vectorOf(frame, axis)};
    Slot item = graphs_.addOwnNode(call.place, call.name, "Slice", operands);
    if (sizes.isAbsent() && keep == 0)
      item = graphs_.addOwnNode(call.place, call.name, "Squeeze", {item, vectorOf(frame, axis)});
    if (item.poisoned) return Status::ok();
    items.push_back(std::move(item));
    at += chunk;
  }
  if (at != extent) return badModel("split adds up to {} of {} elements", at, extent);
  call.set(sequenceOf(std::move(items)));
  return Status::ok();
}

Result<std::optional<std::vector<int64_t>>> SequenceImporter::readChunks(const Call& call,
                                                                         int64_t extent) const {
  using Chunks = std::optional<std::vector<int64_t>>;
  const Frame& frame = call.place.frame;
  const Slot sizes = call.input(1);
  if (sizes.isAbsent())
    return Chunks(std::in_place, static_cast<size_t>(std::min<int64_t>(extent, kMaxNodes)), 1);
  const auto known = sizes.isConstant() ? Builder::knownInts(sizes.value) : std::nullopt;
  if (frame.isTyped(sizes) && isFloat(frame.typeOf(sizes).elem))
    return badModel("its split is {}, expected integers", frame.typeOf(sizes).text());
  if (!known && sizes.isConstant())
    return failure(Code::unsupported, "its split has more than 65536 sizes");
  if (!known) return Chunks();
  if (sizes.value->type.rank() > 0) return Chunks(*known);
  const int64_t size = known->front();
  if (size < 1) return badModel("split is {}, expected a positive size", size);
  std::vector<int64_t> chunks;
  for (int64_t at = 0; at < extent; at += size) chunks.push_back(std::min(size, extent - at));
  return Chunks(std::move(chunks));
}

Status SequenceImporter::addConcat(const Call& call) {
  Frame& frame = call.place.frame;
  const Slot first = call.input(0);
  if (isNoSequence(frame, first)) return badModel("its input is no sequence");
  if (first.list && first.list->empty()) return badModel("the sequence is empty");
  const auto isTyped = [&](const Slot& item) { return frame.isTyped(item); };
  if (!first.list || !std::ranges::all_of(*first.list, isTyped))
    return deferNode(call.place, call.node, call.name, {"a sequence that depends on data"},
                     call.inputs, call.outputs);
  CDL_ASSIGN(const int64_t axis, attributeOf<int64_t>(call.node, "axis", 0));
  CDL_ASSIGN(const int64_t fresh, attributeOf<int64_t>(call.node, "new_axis", 0));
  std::vector<Slot> items = *first.list;
  const Slot where = vectorOf(frame, axis);
  for (Slot& item : items)
    if (fresh) item = graphs_.addOwnNode(call.place, call.name, "Unsqueeze", {item, where});
  call.set(graphs_.addOwnNode(call.place, call.name, "Concat", std::move(items), {{"axis", axis}}));
  return Status::ok();
}

Status SequenceImporter::addLength(const Call& call) {
  Frame& frame = call.place.frame;
  const Slot first = call.input(0);
  if (isNoSequence(frame, first)) return badModel("its input is no sequence");
  if (first.list)
    call.set(frame.addConstant(Tensor::scalarI64(static_cast<int64_t>(first.list->size()))));
  else
    call.set(addStep(frame, call.name, runtime::control_flow::StepKind::length, {first},
                     {call.node.outputs[0], SlotKind::typed, Elem::i64_, {}}));
  return Status::ok();
}

Result<std::optional<size_t>> SequenceImporter::position(const Call& call, size_t input,
                                                         int64_t fallback, int64_t most) const {
  const Slot first = call.input(0), where = call.input(input);
  const auto position = where.isAbsent() ? std::optional(fallback) : knownPosition(where);
  if (!first.list || !position) return std::optional<size_t>();
  const auto size = static_cast<int64_t>(first.list->size());
  if (*position < -size || *position > most)
    return badModel("position {} is out of range for {} elements", *position, size);
  return std::optional(static_cast<size_t>(*position < 0 ? *position + size : *position));
}

Status SequenceImporter::addAt(const Call& call) {
  const Slot first = call.input(0);
  if (isNoSequence(call.place.frame, first)) return badModel("its input is no sequence");
  const int64_t last = knownLength(first) - 1;
  CDL_ASSIGN(const auto at, position(call, 1, last, last));
  if (at)
    call.set((*first.list)[*at]);
  else
    call.set(addStep(call.place.frame, call.name, runtime::control_flow::StepKind::at,
                     {first, call.input(1)},
                     {call.node.outputs[0], SlotKind::tensor, Elem::none, {}}));
  return Status::ok();
}

Status SequenceImporter::addErase(const Call& call) {
  const Slot first = call.input(0);
  if (isNoSequence(call.place.frame, first)) return badModel("its input is no sequence");
  const int64_t last = knownLength(first) - 1;
  CDL_ASSIGN(const auto at, position(call, 1, last, last));
  if (!at) {
    call.set(addStep(call.place.frame, call.name, runtime::control_flow::StepKind::erase,
                     {first, call.input(1)}, sequenceSlot(call.node.outputs[0])));
    return Status::ok();
  }
  std::vector<Slot> items = *first.list;
  items.erase(items.begin() + static_cast<ptrdiff_t>(*at));
  call.set(sequenceOf(std::move(items)));
  return Status::ok();
}

Status SequenceImporter::addInsert(const Call& call) {
  const Slot first = call.input(0);
  if (isNoSequence(call.place.frame, first)) return badModel("its input is no sequence");
  if (call.inputs[1].isAbsent() || call.inputs[1].list) return badModel("the element is no tensor");
  const int64_t size = knownLength(first);
  CDL_ASSIGN(const auto at, position(call, 2, size, size));
  if (!at) {
    call.set(addStep(call.place.frame, call.name, runtime::control_flow::StepKind::insert,
                     {first, call.inputs[1], call.input(2)}, sequenceSlot(call.node.outputs[0])));
    return Status::ok();
  }
  std::vector<Slot> items = *first.list;
  items.insert(items.begin() + static_cast<ptrdiff_t>(*at), call.inputs[1]);
  call.set(sequenceOf(std::move(items)));
  return Status::ok();
}

Status SequenceImporter::addMap(const Call& call) {
  const auto& [place, node, name, inputs, outputs] = call;
  CDL_ASSIGN(const onnx_io::Graph* body, graphs_.graphOf(node, "body"));
  if (!inputs[0].list && (inputs[0].isAbsent() || place.frame.isTyped(inputs[0])))
    return badModel("its input is no sequence");
  if (std::ranges::any_of(inputs, [](const Slot& input) { return input.isAbsent(); }))
    return badModel("an input is missing");
  if (body->inputs.size() != inputs.size() || body->outputs.size() < outputs.size())
    return badModel("its body has {} inputs and {} outputs, expected {} and {}",
                    body->inputs.size(), body->outputs.size(), inputs.size(), outputs.size());
  for (const Slot& input : inputs)
    if (!input.list && !place.frame.isTyped(input))
      return deferNode(place, node, name, {"a sequence that depends on data"}, inputs, outputs);
  std::vector<std::vector<Slot>> mapped(outputs.size());
  for (size_t i = 0; i < inputs[0].list->size(); ++i) {
    Scope scope(&place.scope);
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (inputs[k].list && inputs[k].list->size() != inputs[0].list->size())
        return badModel("its sequences have {} and {} elements", inputs[0].list->size(),
                        inputs[k].list->size());
      scope.define(body->inputs[k].name, inputs[k].list ? (*inputs[k].list)[i] : inputs[k]);
    }
    const std::vector<Slot> results =
        graphs_.addGraph(place.within(place.frame, scope, name), *body);
    for (size_t k = 0; k < outputs.size(); ++k) {
      if (results[k].poisoned) return Status::ok();
      mapped[k].push_back(results[k]);
    }
  }
  for (size_t k = 0; k < outputs.size(); ++k) {
    outputs[k] = {};
    outputs[k].list = std::make_shared<std::vector<Slot>>(std::move(mapped[k]));
  }
  return Status::ok();
}

} // namespace candela::import
