#pragma once

#include "core/compiler/import/import_context.h"

namespace candela::import {

class GraphImporter;

/// Imports If: the branch that a known condition takes, or both as a step of the flow.
class BranchImporter {
public:
  BranchImporter(ImportContext& context, GraphImporter& graphs)
      : context_(context), graphs_(graphs) {}

  Status add(const Place& place, const onnx_io::Node& node, const std::string& name,
             const std::vector<Slot>& inputs, std::vector<Slot>& outputs);

private:
  /// One side of an If whose condition a run decides, in a block of its own.
  struct Branch {
    Frame* body;
    std::vector<Slot> results;
    ImportDiagnostics failed; ///< where its types are impossible: an error of the run that takes it
  };
  Branch addBranch(const Place& place, const onnx_io::Graph& graph, const std::string& name,
                   size_t outputs);
  Status addStep(const Place& place, const onnx_io::Node& node, const std::string& name,
                 const std::vector<Branch>& branches, const Slot& condition,
                 std::vector<Slot>& outputs);

  ImportContext& context_;
  GraphImporter& graphs_;
};

} // namespace candela::import
