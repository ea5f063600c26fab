#include "core/compiler/import/dynamic/control_flow_importer.h"

#include "core/compiler/import/dynamic/flow_values.h"

namespace candela::import {

std::span<const char* const> controlFlowOperators() {
  static constexpr const char* kNames[] = {"If", "Loop", "Scan"};
  return kNames;
}

std::optional<Status> ControlFlowImporter::add(const Place& place, const onnx_io::Node& node,
                                               const std::string& name,
                                               const std::vector<Slot>& inputs,
                                               std::vector<Slot>& outputs) {
  const bool isOwn = node.opType == kMoveFirst;
  if (!node.domain.empty()) return std::nullopt;
  if (!isOwn && std::ranges::count(controlFlowOperators(), node.opType) == 0) return std::nullopt;
  if (anyPoisoned(inputs)) return Status::ok();
  if (isOwn) return scans_.addMoveFirst(place, node, name, inputs, outputs);
  if (node.opType == "If") return branches_.add(place, node, name, inputs, outputs);
  if (node.opType == "Loop") return loops_.add(place, node, name, inputs, outputs);
  return scans_.add(place, node, name, inputs, outputs);
}

} // namespace candela::import
