#pragma once

#include "core/compiler/import/dynamic/branch_importer.h"
#include "core/compiler/import/dynamic/scan_importer.h"

namespace candela::import {

/// The operators of the default domain that hold graphs: If, Loop and Scan.
std::span<const char* const> controlFlowOperators();

/// Imports operators that hold graphs: decided at import where that can be, steps of the flow where
/// only a run can decide.
class ControlFlowImporter {
public:
  ControlFlowImporter(ImportContext& context, GraphImporter& graphs)
      : branches_(context, graphs), loops_(context, graphs), scans_(context, graphs, loops_) {}
  ControlFlowImporter(const ControlFlowImporter&) = delete;
  ControlFlowImporter& operator=(const ControlFlowImporter&) = delete;

  /// Nullopt: the operator has no graphs in it.
  std::optional<Status> add(const Place& place, const onnx_io::Node& node, const std::string& name,
                            const std::vector<Slot>& inputs, std::vector<Slot>& outputs);

private:
  BranchImporter branches_;
  LoopImporter loops_;
  ScanImporter scans_;
};

} // namespace candela::import
