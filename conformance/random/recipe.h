#pragma once

#include "core/compiler/graph/graph.h"

namespace candela::conformance::random {

/// A graph with the data that it runs on, as data: made by the generators, cut by the reducer,
/// built as often as needed.
struct Recipe {
  struct Leaf {
    int id;
    Tensor tensor;
    bool constant = false;
  };
  struct Step {
    graph::OpKind kind;
    std::vector<int> operands; ///< ids; kAbsent
    graph::Attrs attrs;
    std::vector<int> results;                           ///< ids
    std::shared_ptr<const graph::Graph> body = nullptr; ///< of a loop
  };
  static constexpr int kAbsent = -1;

  std::vector<Leaf> leaves;
  std::vector<Step> steps; ///< in topological order
  std::vector<int> outputs;
  int nextId = 0;

  int addLeaf(Tensor tensor, bool constant) {
    leaves.push_back({nextId, std::move(tensor), constant});
    return nextId++;
  }
  const Leaf* leaf(int id) const;

  /// Failure: inference refuses a step.
  Result<graph::Graph> build() const;
  std::vector<Tensor> inputs() const;
  /// Drops what no output needs.
  void prune();
  uint64_t elements() const; ///< of all leaves
};

/// Writes `folder`/model.cdl, the inputs as .npy and the expected outputs, and returns the command
/// line that runs it.
Result<std::string> writeCase(const Recipe& recipe, std::span<const Tensor> expected, double atol,
                              const std::string& folder, const std::string& backend);

} // namespace candela::conformance::random
