#pragma once

#include "core/compiler/import/import_context.h"

/// What importers of control flow and sequences ask of values and attributes.
namespace candela::import {

/// What a slot of the run would be for a value.
runtime::control_flow::Slot runSlotFor(const Frame& frame, const Slot& slot,
                                       const std::string& name);
/// What holds either of two slots.
runtime::control_flow::Slot mergedSlot(const runtime::control_flow::Slot& a,
                                       const runtime::control_flow::Slot& b);

bool anyPoisoned(const std::vector<Slot>& slots);
/// The only element of a constant of bool or an integer; nullopt when it is none.
std::optional<int64_t> knownScalar(const Slot& slot);

template <typename T>
Result<T> attributeOf(const onnx_io::Node& node, const char* name, T fallback) {
  const auto found = node.attributes.find(name);
  if (found == node.attributes.end()) return fallback;
  if (const T* value = std::get_if<T>(&found->second)) return *value;
  return badModel("attribute '{}' has a wrong type", name);
}
/// Failure: the node has an attribute beside these.
Status checkAttributeNames(const onnx_io::Node& node, std::span<const char* const> names);

} // namespace candela::import
