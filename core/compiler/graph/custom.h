#pragma once

#include "core/compiler/graph/graph.h"

/// The op `custom`: a node of a domain that a plugin claims (custom_op in cdl.h).
///
/// It becomes one CUSTOM instruction of that plugin, with the function `fn` and the attributes that
/// have the names attr256 to attr65535. Its body, where it has one, is the same in other ops, over
/// the same operands. Its results have the types that are declared, which are those of the body's
/// outputs.
///
///   %y = custom %x {attr256 = 3, fn = 7, op = "com.acme.Swirl", plugin = "acme"} loc("Swirl_0") :
///     f32[4] body(%x: f32[4]) -> (%y: f32[4]) {
///       %y = add %x, %x : f32[4]
///     }
namespace candela::graph {

/// An attribute of the instruction, as cdl_attr_t has it.
struct InstrAttr {
  uint16_t id = 0;
  uint8_t type = 0; ///< 1 int, 2 float (bits of a double), 3 ints
  std::vector<int64_t> values;
};
/// "attr256"
std::string instrAttrName(uint16_t id);
/// Of a node that was verified, by their ids.
std::vector<InstrAttr> instrAttrs(const Node& node);
/// The type of an attribute of the instruction that any node becomes.
uint8_t instrAttrType(const Node& node, uint16_t id);

/// What a node does, for reports: a custom op by the model's own name.
std::string shownOp(const Node& node);

/// Appends one with results of these types. Failure: what verify() would say of it; the graph is
/// unchanged then.
Result<Node*> addCustom(Graph& graph, std::vector<Value*> operands, Attrs attrs,
                        std::shared_ptr<Graph> body, std::vector<TensorType> types,
                        Provenance provenance);

} // namespace candela::graph
