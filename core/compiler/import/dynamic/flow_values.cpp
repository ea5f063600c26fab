#include "core/compiler/import/dynamic/flow_values.h"

namespace candela::import {
namespace {

using SlotKind = runtime::control_flow::Slot::Kind;

bool isTensorSlot(const runtime::control_flow::Slot& slot) {
  return slot.kind == SlotKind::typed || slot.kind == SlotKind::tensor;
}

} // namespace

runtime::control_flow::Slot runSlotFor(const Frame& frame, const Slot& slot,
                                       const std::string& name) {
  if (slot.list) return {name, SlotKind::sequence, Elem::none, {}};
  if (slot.isAbsent()) return {name, SlotKind::optional, Elem::none, {}};
  if (!slot.value) {
    runtime::control_flow::Slot made = frame.runSlot(slot);
    made.name = name;
    return made;
  }
  return {name, SlotKind::typed, slot.value->type.elem, slot.value->type.shape()};
}

runtime::control_flow::Slot mergedSlot(const runtime::control_flow::Slot& a,
                                       const runtime::control_flow::Slot& b) {
  runtime::control_flow::Slot made = a;
  if (isTensorSlot(a) && isTensorSlot(b)) {
    if (a.kind == b.kind && a.elem == b.elem && a.dims == b.dims) return made;
    made.kind = SlotKind::tensor;
    made.elem = a.elem == b.elem ? a.elem : Elem::none;
  } else if (a.kind != b.kind) {
    made.kind = SlotKind::optional;
  }
  return made;
}

bool anyPoisoned(const std::vector<Slot>& slots) {
  return std::ranges::any_of(slots, [](const Slot& slot) { return slot.poisoned; });
}

std::optional<int64_t> knownScalar(const Slot& slot) {
  if (!slot.isConstant() || slot.value->type.count() != 1) return std::nullopt;
  const auto ints = Builder::knownInts(slot.value);
  return ints ? std::optional(ints->front()) : std::nullopt;
}

Status checkAttributeNames(const onnx_io::Node& node, std::span<const char* const> names) {
  for (const auto& [name, value] : node.attributes)
    if (std::ranges::find(names, name) == names.end())
      return badModel("attribute '{}' is unknown to {}", name, node.opType);
  return Status::ok();
}

} // namespace candela::import
