// A border of its own before a convolution or a pool becomes the border that the window op makes
// itself.
#include <cmath>

#include "core/compiler/graph/passes/rewrite.h"

namespace candela::graph::passes {

namespace {

/// What the op takes for elements of its border; an absent value pads with 0.
bool isOwnBorder(const Node& node, const Value* value) {
  const bool isZero = !value || isSplatOf(value, 0);
  // With it, windows that begin in the border are dropped.
  if (node.hasAttr("ceil_mode") && node.intAttr("ceil_mode")) return false;
  switch (node.kind) {
  case OpKind::Conv: return isZero;
  case OpKind::ConvInteger: {
    const Value* zeroPoint = node.operandNamed("x_zero");
    const auto bits = value ? splatBits(value) : 0;
    const auto own = zeroPoint ? splatBits(zeroPoint) : 0;
    return bits && own && *bits == *own;
  }
  case OpKind::AveragePool: return isZero && node.intAttr("count_include_pad");
  case OpKind::MaxPool: {
    const auto real = splatReal(value);
    return node.results().size() == 1 && real && *real == -INFINITY;
  }
  default: return false;
  }
}

Result<bool> foldPad(Graph&, Node* node) {
  if (!isPlain(node->results().empty() ? nullptr : node->result())) return false;
  const Value* padded = node->operands().empty() ? nullptr : node->operand(0);
  const Node* pad = padded ? padded->producer : nullptr;
  if (!pad || pad->kind != OpKind::Pad || pad->stringAttr("mode") != "constant" ||
      !isOwnBorder(*node, pad->operand(1)))
    return false;
  const auto lo = pad->intsAttr("lo"), hi = pad->intsAttr("hi");
  const size_t spatial = lo.size() - 2;
  auto pads = node->intsAttr("pads", 2 * spatial, 0);
  for (size_t d = 0; d < lo.size(); ++d) {
    if (lo[d] < 0 || hi[d] < 0 || (d < 2 && (lo[d] || hi[d]))) return false;
    if (d < 2) continue;
    pads[d - 2] += lo[d];
    pads[d - 2 + spatial] += hi[d];
  }
  node->attrs["pads"] = pads;
  node->provenance = mergedProvenance(pad->provenance, node->provenance);
  node->setOperand(0, pad->operand(0));
  return true;
}

} // namespace

Result<int> foldPadding(Graph& graph) { return onEachNode(graph, foldPad); }

} // namespace candela::graph::passes
