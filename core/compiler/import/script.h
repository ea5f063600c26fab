#pragma once

#include <set>
#include <variant>

#include "core/compiler/import/import.h"
#include "core/runtime/control_flow/flow.h"

/// A model as import leaves it where one Graph does not do: Graphs of known shapes, parts whose
/// shapes or operands only a run knows, and the flow between them.
namespace candela::import {

using Opsets = std::map<std::string, int64_t>;

/// Nodes that are imported again at each new set of shapes and contents. Values go by the names of
/// the flow's slots. Holds what it needs of the model. Immutable.
struct Section {
  struct Item {
    onnx_io::Node node;
    std::string name; ///< the user's
    Opsets opsets;
    std::vector<std::vector<int64_t>> known; ///< what NodeContext::contents() gives, call by call,
    std::string content;                     ///< and a value whose integers it gives then; "": none
  };
  struct Input {
    std::string name;
    bool frozen = false; ///< its content must be known
  };
  std::shared_ptr<const onnx_io::Model> model; ///< for its functions
  std::vector<Item> items;
  std::vector<Input> inputs;
  std::vector<std::string> outputs;
  std::map<std::string, Tensor> constants;
  std::string why; ///< why the first node waits
  ClaimOp claim;   ///< of the options that the model was imported with, as is
  std::optional<uint64_t> randomSeed;
};

struct Script {
  using Unit = std::variant<graph::Graph, std::shared_ptr<const Section>>;
  runtime::control_flow::Flow flow;
  std::vector<Unit> units;

  /// A Graph with its inputs and outputs.
  static Script of(graph::Graph graph);
  /// The one Graph of a model without steps; null otherwise.
  graph::Graph* graph();
  /// Inputs whose contents its parts wait for, directly or through other nodes.
  std::vector<std::string> demandedInputs() const;
  /// Why it is no single Graph, by node.
  Status refusal(const std::string& path) const;
};

/// Like importModel, of models with control flow, sequences and shapes that only a run knows, too.
/// Where options.bindAtRun, inputs may be of unknown shape. The model is kept by deferred parts.
Result<Script> importScript(std::shared_ptr<const onnx_io::Model> model,
                            const ImportOptions& options = {});

/// The section for these inputs, of which dims and element types count, and the contents of frozen
/// ones. The script's inputs are those that are not frozen, sequences element by element.
Result<Script> importSection(const Section& section,
                             std::span<const runtime::control_flow::Value> inputs);

} // namespace candela::import
