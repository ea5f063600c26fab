// Sequences and optionals: lists of names where import knows how long they are, steps of the flow
// where only a run does.
#include "core/compiler/import/graph_importer.h"

namespace candela::import {
namespace {

using Kind = flow::Slot::Kind;
using Outputs = std::vector<Slot>;

std::optional<int64_t> knownPosition(const Slot& slot) {
  const auto ints = slot.isConstant() ? Builder::knownInts(slot.value) : std::nullopt;
  return ints && ints->size() == 1 ? std::optional(ints->front()) : std::nullopt;
}

struct ListOperator {
  const char* name;
  size_t minInputs, maxInputs;
};
constexpr ListOperator kSequenceOperators[] = {{"SequenceConstruct", 1, SIZE_MAX},
                                               {"SequenceEmpty", 0, 0},
                                               {"SequenceInsert", 2, 3},
                                               {"SequenceErase", 1, 2},
                                               {"SequenceAt", 2, 2},
                                               {"SequenceLength", 1, 1},
                                               {"SequenceMap", 1, SIZE_MAX},
                                               {"SplitToSequence", 1, 2},
                                               {"ConcatFromSequence", 1, 1},
                                               {"Optional", 0, 1},
                                               {"OptionalHasElement", 0, 1},
                                               {"OptionalGetElement", 1, 1}};

} // namespace

std::vector<std::string> listOperators() {
  std::vector<std::string> names;
  for (const ListOperator& op : kSequenceOperators) names.emplace_back(op.name);
  return names;
}

std::optional<Status> Walk::addList(const Place& place, const onnx_io::Node& node,
                                    const std::string& name, const std::vector<Slot>& inputs,
                                    std::vector<Slot>& outputs) {
  if (!node.domain.empty() || outputs.empty()) return std::nullopt;
  const auto isList = [&](const Slot& slot) {
    return slot.list || (slot.run != flow::kNoSlot && !slot.value &&
                         place.frame.runSlot(slot).kind >= Kind::sequence);
  };
  const auto found = std::ranges::find(kSequenceOperators, node.opType, &ListOperator::name);
  if (found == std::end(kSequenceOperators)) {
    if (node.opType != "Identity" || inputs.size() != 1 || !isList(inputs[0])) return std::nullopt;
    outputs[0] = inputs[0];
    return Status::ok();
  }
  size_t given = inputs.size();
  while (given > 0 && node.inputs[given - 1].empty()) --given;
  if (given < found->minInputs || given > found->maxInputs)
    return badModel("has {} inputs, expected at least {}", given, found->minInputs);
  for (const Slot& input : inputs)
    if (input.poisoned) return Status::ok();
  return addListNode(place, node, name, inputs, outputs);
}

Status Walk::addListNode(const Place& place, const onnx_io::Node& node, const std::string& name,
                         const std::vector<Slot>& inputs, std::vector<Slot>& outputs) {
  const std::string& op = node.opType;
  const auto listOf = [](std::vector<Slot> items) {
    Slot slot;
    slot.list = std::make_shared<std::vector<Slot>>(std::move(items));
    return slot;
  };
  const auto step = [&](flow::StepKind kind, std::vector<Slot> reads, flow::Slot gives) {
    flow::Step made;
    made.kind = kind;
    made.node = name;
    return place.frame.addStep(std::move(made), std::move(reads), {std::move(gives)})[0];
  };
  const auto attribute = [&](const char* which, int64_t fallback) -> Result<int64_t> {
    const auto at = node.attributes.find(which);
    if (at == node.attributes.end()) return fallback;
    if (const auto* value = std::get_if<int64_t>(&at->second)) return *value;
    return badModel("attribute '{}' has a wrong type", which);
  };
  const auto sequence = [](const std::string& what) {
    return flow::Slot{what, Kind::sequence, Elem::none, {}};
  };
  const Slot first = inputs.empty() ? Slot() : inputs[0];
  const std::string& output = node.outputs[0];

  if (op == "SequenceEmpty") return outputs[0] = listOf({}), Status::ok();
  if (op == "SequenceConstruct") {
    for (const Slot& input : inputs) {
      if (input.isAbsent() || input.list) return badModel("an element is no tensor");
      if (place.frame.isTyped(input) && place.frame.isTyped(first) &&
          place.frame.typeOf(input).elem != place.frame.typeOf(first).elem)
        return badModel("elements are {} and {}", place.frame.typeOf(first).text(),
                        place.frame.typeOf(input).text());
    }
    outputs[0] = listOf(inputs);
    return Status::ok();
  }
  if (op == "Optional") return outputs[0] = first, Status::ok();
  const bool maybeNothing = first.run != flow::kNoSlot && !first.value &&
                            place.frame.runSlot(first).kind == Kind::optional;
  if (op == "OptionalHasElement") {
    if (maybeNothing)
      outputs[0] = step(flow::StepKind::has, {first}, {output, Kind::typed, Elem::bool_, {}});
    else
      outputs[0] = constantSlot(
          place.frame, Tensor::of<uint8_t>(Elem::bool_, {}, {uint8_t(first.isAbsent() ? 0 : 1)}));
    return Status::ok();
  }
  if (op == "OptionalGetElement") {
    if (first.isAbsent()) return badModel("the optional has no element");
    outputs[0] = maybeNothing
                     ? step(flow::StepKind::get, {first}, {output, Kind::optional, Elem::none, {}})
                     : first;
    return Status::ok();
  }
  if (op == "SplitToSequence") {
    const Slot sizes = inputs.size() > 1 ? inputs[1] : Slot();
    if (!place.frame.isTyped(first))
      return defer(place, node, name, "a shape that depends on data", inputs, outputs);
    CDL_ASSIGN(int64_t axis, attribute("axis", 0));
    CDL_ASSIGN(const int64_t keep, attribute("keepdims", 1));
    const graph::TensorType type = place.frame.typeOf(first);
    CDL_ASSIGN(axis, resolveAxis(axis, type.rank()));
    const int64_t extent = type.dim(static_cast<int>(axis));
    std::vector<int64_t> chunks;
    if (sizes.isAbsent()) {
      chunks.assign(static_cast<size_t>(std::min<int64_t>(extent, kMaxNodes)), 1);
    } else {
      const auto known = sizes.isConstant() ? Builder::knownInts(sizes.value) : std::nullopt;
      if (place.frame.isTyped(sizes) && isFloat(place.frame.typeOf(sizes).elem))
        return badModel("its split is {}, expected integers", place.frame.typeOf(sizes).text());
      if (!known && sizes.isConstant())
        return failure(Code::unsupported, "its split has more than 65536 sizes");
      if (!known)
        return defer(place, node, name, "its split is not known when the model is imported", inputs,
                     outputs, {1});
      if (sizes.value->type.rank() > 0) {
        chunks = *known;
      } else {
        if ((*known)[0] < 1) return badModel("split is {}, expected a positive size", (*known)[0]);
        for (int64_t at = 0; at < extent; at += (*known)[0])
          chunks.push_back(std::min((*known)[0], extent - at));
      }
    }
    int64_t at = 0;
    std::vector<Slot> items;
    const auto one = [&](int64_t value) {
      return constantSlot(place.frame, Tensor::of<int64_t>(Elem::i64_, {1}, {value}));
    };
    for (const int64_t chunk : chunks) {
      if (chunk < 0 || chunk > extent - at)
        return badModel("split of {} goes beyond {} elements", chunk, extent);
      if (++nodes_ > kMaxNodes) return badModel("it has more than {} elements", kMaxNodes);
      Slot item = synthesized(place, name, "Slice", {first, one(at), one(at + chunk), one(axis)});
      if (sizes.isAbsent() && keep == 0)
        item = synthesized(place, name, "Squeeze", {item, one(axis)});
      if (item.poisoned) return Status::ok();
      items.push_back(std::move(item));
      at += chunk;
    }
    if (at != extent) return badModel("split adds up to {} of {} elements", at, extent);
    outputs[0] = listOf(std::move(items));
    return Status::ok();
  }
  const auto isNoSequence = [&](const Slot& slot) {
    return !slot.list && (slot.isAbsent() || place.frame.isTyped(slot));
  };
  if (op == "ConcatFromSequence") {
    if (isNoSequence(first)) return badModel("its input is no sequence");
    const bool known = first.list && !first.list->empty() &&
                       std::ranges::all_of(*first.list, [&](const Slot& item) {
                         return place.frame.isTyped(item);
                       });
    if (first.list && first.list->empty()) return badModel("the sequence is empty");
    if (!known) return defer(place, node, name, "a sequence that depends on data", inputs, outputs);
    CDL_ASSIGN(const int64_t axis, attribute("axis", 0));
    CDL_ASSIGN(const int64_t fresh, attribute("new_axis", 0));
    std::vector<Slot> items = *first.list;
    const Slot where = constantSlot(place.frame, Tensor::of<int64_t>(Elem::i64_, {1}, {axis}));
    for (Slot& item : items)
      if (fresh) item = synthesized(place, name, "Unsqueeze", {item, where});
    outputs[0] = synthesized(place, name, "Concat", std::move(items), {{"axis", axis}});
    return Status::ok();
  }
  if (op == "SequenceMap") return mapSequence(place, node, name, inputs, outputs);

  // What is left reads a sequence first.
  if (isNoSequence(first)) return badModel("its input is no sequence");
  const auto size = static_cast<int64_t>(first.list ? first.list->size() : 0);
  if (op == "SequenceLength") {
    outputs[0] = first.list
                     ? constantSlot(place.frame, Tensor::scalarI64(size))
                     : step(flow::StepKind::length, {first}, {output, Kind::typed, Elem::i64_, {}});
    return Status::ok();
  }
  const size_t positionAt = op == "SequenceInsert" ? 2 : 1;
  const Slot where = inputs.size() > positionAt ? inputs[positionAt] : Slot();
  const auto position = where.isAbsent() ? std::optional(op == "SequenceInsert" ? size : size - 1)
                                         : knownPosition(where);
  if (op == "SequenceInsert" && (inputs[1].isAbsent() || inputs[1].list))
    return badModel("the element is no tensor");
  if (!first.list || !position) {
    if (op == "SequenceAt")
      outputs[0] = step(flow::StepKind::at, {first, where}, {output, Kind::tensor, Elem::none, {}});
    else if (op == "SequenceErase")
      outputs[0] = step(flow::StepKind::erase, {first, where}, sequence(output));
    else
      outputs[0] = step(flow::StepKind::insert, {first, inputs[1], where}, sequence(output));
    return Status::ok();
  }
  std::vector<Slot> items = *first.list;
  const int64_t most = op == "SequenceInsert" ? size : size - 1;
  if (*position < -size || *position > most)
    return badModel("position {} is out of range for {} elements", *position, size);
  const auto at = items.begin() + (*position < 0 ? *position + size : *position);
  if (op == "SequenceAt") return outputs[0] = *at, Status::ok();
  if (op == "SequenceErase")
    items.erase(at);
  else
    items.insert(at, inputs[1]);
  outputs[0] = listOf(std::move(items));
  return Status::ok();
}

Status Walk::mapSequence(const Place& place, const onnx_io::Node& node, const std::string& name,
                         const std::vector<Slot>& inputs, std::vector<Slot>& outputs) {
  CDL_ASSIGN(const onnx_io::Graph* body, graphOf(node, "body"));
  if (!inputs[0].list && (inputs[0].isAbsent() || place.frame.isTyped(inputs[0])))
    return badModel("its input is no sequence");
  if (std::ranges::any_of(inputs, [](const Slot& input) { return input.isAbsent(); }))
    return badModel("an input is missing");
  if (body->inputs.size() != inputs.size() || body->outputs.size() < outputs.size())
    return badModel("its body has {} inputs and {} outputs, expected {} and {}",
                    body->inputs.size(), body->outputs.size(), inputs.size(), outputs.size());
  for (const Slot& input : inputs)
    if (!input.list && !place.frame.isTyped(input))
      return defer(place, node, name, "a sequence that depends on data", inputs, outputs);
  std::vector<std::vector<Slot>> mapped(outputs.size());
  for (size_t i = 0; i < inputs[0].list->size(); ++i) {
    Scope scope(&place.scope);
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (inputs[k].list && inputs[k].list->size() != inputs[0].list->size())
        return badModel("its sequences have {} and {} elements", inputs[0].list->size(),
                        inputs[k].list->size());
      scope.define(body->inputs[k].name, inputs[k].list ? (*inputs[k].list)[i] : inputs[k]);
    }
    const std::vector<Slot> results = addGraph(place.within(place.frame, scope, name), *body);
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
