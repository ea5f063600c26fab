#pragma once

#include "core/compiler/capabilities/target.h"
#include "core/compiler/graph/graph.h"
#include "core/support/text/expr.h"

namespace candela::lowering::decompose {

/// An `affine` that changes nothing but how its operand lies in memory.
bool convertsLayout(const graph::Node& node);

/// How an instruction walks a value: dims, strides and offset in elements of the value's bytes.
struct NodeView {
  const graph::Value* value = nullptr; ///< null: a constant of one element, 0
  Elem elem = Elem::none;
  Shape dims;
  std::vector<int64_t> strides;
  int64_t offset = 0;
  /// where the kind asks for logical dims: dims are the physical ones of these
  graph::Layout layout;
};

/// `x`, broadcast to the shape of `y`, over y's physical dims and on y's layout: how an epilogue of
/// y reads it, or y itself. x lies as y does or row-major.
NodeView viewOver(const graph::Value* x, const graph::Value* y);
/// One instruction that a node becomes: what a target is asked about, and what emit then makes.
struct NodeInstr {
  uint16_t kind = 0, fn = 0;
  std::vector<NodeView> operands;
  NodeView result;
  std::vector<std::pair<uint16_t, std::vector<int64_t>>> attrs; ///< CDL_ATTR_*
  /// of ELEMENTWISE over the operands, else the epilogue over `views`
  text::ExprSteps steps;
  std::vector<NodeView> views;   ///< that only the epilogue reads, over the result
  Elem accumulator = Elem::none; ///< what the epilogue starts from
  std::vector<NodeView> others;  ///< results behind the first one
  /// Of REDUCE: so many of the steps compute what is reduced, of type `reduced`. Then `operands`
  /// are what these read, and the epilogue's views count on behind them.
  size_t prologue = 0;
  Elem reduced = Elem::none;
};
/// The one instruction of a `custom`.
NodeInstr customInstr(const graph::Node& node);

/// The kinds whose instructions may carry an epilogue.
bool hasEpilogue(uint16_t kind);
/// An `expr` that reads `acc`: its first operand is computed by the same instruction, by the node
/// that this returns. Null where that has no instruction with an epilogue, and for every other
/// node.
const graph::Node* accumulatorOf(const graph::Node& node);
/// The `expr` that is the epilogue of this node; null where the node's result is read in any other
/// way.
const graph::Node* epilogueOf(const graph::Node& node);

/// The `expr` that is the prologue of this `reduce`: nobody else reads it, and it is never stored.
/// Null for every other node.
const graph::Node* prologueOf(const graph::Node& reduce);
/// The `reduce` whose prologue this node is; null where there is none.
const graph::Node* reductionOf(const graph::Node& node);

/// Every instruction that the node becomes as it is, a FILL or COPYs that go with it (place, put)
/// included. Empty when it has none: a composite without an optional instruction, an alias.
/// Elementwise ops, lowered forms, and composites with an optional kind (conv -> CONV2D,
/// max_pool/average_pool -> POOL2D, softmax -> SOFTMAX) have some. An `expr` that reads `acc` is
/// the instruction of its first operand with an epilogue; where there is none it is ELEMENTWISE and
/// `acc` one more operand.
std::vector<NodeInstr> instructionsOf(const graph::Node& node);

/// All of them there, and one at least: an expression walks values as they lie.
bool isWalkable(const std::vector<graph::Value*>& values);

/// The function that a node is as a step, without operands; nullopt when no step does the same.
std::optional<text::ExprStep> stepOf(const graph::Node& node);

/// The question to a target whether it takes the instruction.
capabilities::InstrDesc describe(const NodeInstr& instr);

} // namespace candela::lowering::decompose
