#pragma once

#include "core/compiler/import/dynamic/loop_importer.h"

namespace candela::import {

/// An operator of our own that a Scan needs: dim 0 goes to `axis`. No model names it.
inline constexpr const char* kMoveFirst = "\x01MoveFirst";

/// Imports Scan, as a Loop whose body takes its slices first.
class ScanImporter {
public:
  ScanImporter(ImportContext& context, GraphImporter& graphs, LoopImporter& loops)
      : context_(context), graphs_(graphs), loops_(loops) {}

  Status add(const Place& place, const onnx_io::Node& node, const std::string& name,
             const std::vector<Slot>& inputs, std::vector<Slot>& outputs);
  /// Adds a node kMoveFirst, of a tensor whose rank may be the run's.
  Status addMoveFirst(const Place& place, const onnx_io::Node& node, const std::string& name,
                      const std::vector<Slot>& inputs, std::vector<Slot>& outputs);

private:
  using Ints = std::vector<int64_t>;
  /// What a Scan says of its inputs and outputs: states come first, then what is scanned.
  struct Form {
    size_t states = 0;
    Ints inAxes, inBackward;   ///< by scanned input
    Ints outAxes, outBackward; ///< by scan output
  };
  Result<Form> readForm(const onnx_io::Node& node, const onnx_io::Graph& body, size_t inputs,
                        size_t outputs) const;
  /// The body of a Loop, and how often it runs.
  struct LoopForm {
    onnx_io::Graph body;
    int64_t trips;
  };
  /// `scope`: where what the body reads from outside is defined.
  Result<LoopForm> makeLoop(const Place& place, const onnx_io::Graph& body, const std::string& name,
                            const Form& form, const std::vector<Slot>& inputs, Scope& scope);
  /// Turns the stacks of a Loop into what the form says of them.
  void arrangeStacks(const Place& place, const std::string& name, const Form& form,
                     std::vector<Slot>& made, size_t outputs);
  /// Opset 8: every operand has batches in front.
  Status addBatched(const Place& place, const onnx_io::Node& node, const std::string& name,
                    const std::vector<Slot>& inputs, std::vector<Slot>& outputs);
  Slot zeros(const Place& place, const std::string& name, Elem elem, const Shape& shape);

  ImportContext& context_;
  GraphImporter& graphs_;
  LoopImporter& loops_;
};

} // namespace candela::import
