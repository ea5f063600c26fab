#pragma once

#include <array>
#include <map>

#include "core/compiler/lowering/decompose/describe.h"
#include "core/compiler/lowering/emit/emit.h"

/// What emit.cpp and loop.cpp share; not for other rooms.
namespace candela::lowering::emit {

/// Builds one Program. Buffers first, then node after node; the body of a loop in the same way.
class Emitter {
public:
  Emitter(const graph::Graph& graph, const capabilities::Target& target)
      : graph_(&graph), target_(target) {}
  Result<program::Program> run();

private:
  using Node = graph::Node;
  using Value = graph::Value;

  /// Where the first element of a value lies; what steps with a loop lies elsewhere in each run of
  /// it.
  struct Home {
    uint32_t buffer = program::kNone;
    int64_t offset = 0;
    std::array<int64_t, CDL_MAX_LOOP_NESTING> ivStrides = {};
    friend bool operator==(const Home&, const Home&) = default;
  };

  void declareSpaces();
  uint32_t declare(const std::string& name, const graph::TensorType& type, program::Role role);
  void declareBorders();
  /// Of the values that a graph computes.
  Status declareValues();
  /// Everything that the nodes of a graph do.
  Status emitNodes();
  Status emitNode(const Node& node);
  /// Fills the halo of the result: slabs before and behind the content of each dim, as wide as all
  /// of the later ones.
  void addBorder(const Node& node);
  /// Outputs that are inputs, constants, or the same value as an earlier output.
  void finishOutputs();

  /// The value whose bytes this one is: reshapes share their operand's buffer.
  static const Value* baseOf(const Value* value);
  /// Another node's instruction computes it.
  bool isWithin(const Node& node) const;
  const Home& homeOf(const Value* value) const { return homes_.at(baseOf(value)); }
  program::View at(const Home& home, Elem elem, Shape dims) const;
  program::View dense(const Value* value, Shape dims) const {
    return at(homeOf(value), value->type.elem, std::move(dims));
  }
  program::View viewOf(const decompose::NodeView& from);
  /// Appends with provenance, inside of the loops that are being emitted.
  void add(program::Instr instr, const Node& node);

  // Loops, in loop.cpp.
  Status emitLoop(const Node& loop);
  void addLoops(program::Instr& instr) const;
  /// The slice of dim 0 of a value there that the innermost loop has reached.
  Home sliceOf(Home home, const graph::TensorType& type, int64_t trips, bool backward) const;
  void copy(const Home& from, const Home& to, const graph::TensorType& type, const Node& node);
  /// What is one run's result and the next one's operand goes there at the end of a run.
  void carry(const Node& loop);

  const graph::Graph* graph_; ///< what is being emitted: the graph, or the body of a loop
  const capabilities::Target& target_;
  program::Program program_;
  std::map<const Value*, Home> homes_; ///< of base values
  std::vector<const Node*> loops_;     ///< that are being emitted, from the outermost on
  uint32_t loop_ = program::kNone;     ///< the innermost one of the Program
};

} // namespace candela::lowering::emit
