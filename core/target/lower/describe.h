#pragma once

#include "core/graph/graph.h"
#include "core/support/text/expr.h"
#include "core/target/target.h"

namespace candela::target {

/// An `affine` that changes nothing but how its operand lies in memory.
bool convertsLayout(const graph::Node& node);

/// How an instruction walks a value: dims, strides and offset in elements of the value's bytes.
struct NodeView {
  const graph::Value* value = nullptr; ///< null: a constant of one element, 0
  Elem elem = Elem::none;
  Shape dims;
  std::vector<int64_t> strides;
  int64_t offset = 0;
  graph::Layout layout; ///< where the kind asks for logical dims: dims are the physical ones of these
};

/// `x`, broadcast to the shape of `y`, over y's physical dims and on y's layout: how an epilogue of y reads it, or y
/// itself. x lies as y does or row-major.
NodeView viewOver(const graph::Value* x, const graph::Value* y);
/// The same of x[C], one value for each index of y's dim 1.
NodeView channelsOver(const graph::Value* x, const graph::Value* y);

/// One instruction that a node becomes: what a target is asked about, and what emit then makes.
struct NodeInstr {
  uint16_t kind = 0, fn = 0;
  std::vector<NodeView> operands;
  NodeView result;
  std::vector<std::pair<uint16_t, std::vector<int64_t>>> attrs; ///< CDL_ATTR_*
  text::ExprSteps steps;                                        ///< of ELEMENTWISE
  NodeView second;                                              ///< of SORT: the places
  const graph::Value* bias = nullptr; ///< of CONV2D: one value a channel is added as an epilogue
};

/// Every instruction that the node becomes as it is, a FILL or COPYs that go with it (place, put)
/// included. Empty when it has none: a composite without an optional instruction, an alias.
/// Elementwise ops, lowered forms, and composites with an optional kind (conv -> CONV2D,
/// max_pool/average_pool -> POOL2D, softmax -> SOFTMAX) have some.
std::vector<NodeInstr> instructionsOf(const graph::Node& node);

/// The question to a target whether it takes the instruction.
InstrDesc describe(const NodeInstr& instr);

} // namespace candela::target
