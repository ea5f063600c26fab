#ifndef CANDELA_CORE_PROGRAM_EMIT_EMITTER_H
#define CANDELA_CORE_PROGRAM_EMIT_EMITTER_H

#include <map>

#include "core/program/emit/emit.h"
#include "core/target/views.h"

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
  Status checkRows() const;

  Status emitNode(const Node& node);
  Status emitElementwise(const Node& node, uint16_t kind, uint16_t fn, std::vector<Attr> attrs = {});
  Status emitExpression(const Node& node);
  Status emitPlace(const Node& node);
  Status emitMatmul(const Node& node);
  Status emitConv(const Node& node);
  Status emitPool(const Node& node);
  Status emitAlongAxis(const Node& node, uint16_t kind, uint16_t fn);

  /// The value whose bytes this one is: reshapes share their operand's buffer.
  static const Value* baseOf(const Value* value);
  uint32_t bufferOf(const Value* value);
  View dense(const Value* value, Shape dims) { return denseView(bufferOf(value), value->type.elem, std::move(dims)); }
  View dense(const Value* value) { return dense(value, value->type.shape()); }
  /// A view with these strides, from the start of the value's buffer.
  View strided(const Value* value, const Shape& dims, const std::vector<int64_t>& strides, int64_t offset = 0);
  /// Appends with provenance and waits.
  void add(Instr instr, const Node& node);
  void add(uint16_t kind, uint16_t fn, const Node& node, std::vector<View> inputs, View output,
           std::vector<Attr> attrs = {});

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

#endif
