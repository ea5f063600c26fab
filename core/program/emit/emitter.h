#pragma once

#include <map>

#include "core/program/emit/emit.h"
#include "core/target/lower/describe.h"

namespace candela::program {

/// Builds one Program. Buffers first, then node after node; waits follow from who last wrote and
/// read each buffer.
class Emitter {
public:
  Emitter(const graph::Graph& graph, const target::Target& target) : graph_(graph), target_(target) {}
  Result<Program> run();

private:
  using Value = graph::Value;
  using Node = graph::Node;

  void declareSpaces();
  void declareBuffers();
  Status finishOutputs();

  void addBorder(const Node& node);
  Status emitNode(const Node& node);
  static Status addSteps(const Node& node, const target::NodeInstr& from, size_t first, Instr& instr);
  /// Another node's instruction computes it.
  bool isWithin(const Node& node) const;
  View viewOf(const target::NodeView& from);

  /// The value whose bytes this one is: reshapes share their operand's buffer.
  static const Value* baseOf(const Value* value);
  uint32_t bufferOf(const Value* value);
  View dense(const Value* value, Shape dims) { return denseView(bufferOf(value), value->type.elem, std::move(dims)); }
  /// Appends with provenance and waits.
  void add(Instr instr, const Node& node);

  const graph::Graph& graph_;
  const target::Target& target_;
  Program program_;
  std::map<const Value*, uint32_t> buffers_; ///< of base values
  struct Touch {
    uint32_t writer = kNone;
    std::vector<uint32_t> readers; ///< since the last write
  };
  std::vector<Touch> touched_; ///< by buffer
};

} // namespace candela::program
