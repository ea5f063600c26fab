#include <algorithm>

#include "core/compiler/lowering/decompose/lower.h"
#include "core/compiler/lowering/layout/layout.h"
#include "core/support/float_bits.h"

namespace candela::lowering::layout {

using graph::Graph;
using graph::Halo;
using graph::Layout;
using graph::Node;
using graph::OpKind;

namespace {

/// What a window reads beside x: its fill, and how far it reaches per spatial dim, [h begin, w
/// begin, h end, w end].
struct Reach {
  uint64_t fill = 0;
  std::vector<int64_t> pads;
};

std::optional<Reach> reachOf(const Node& reader, const graph::Value& x) {
  if (reader.operand(0) != &x || reader.kind == OpKind::Expr) return std::nullopt;
  const std::vector<decompose::NodeInstr> instrs = decompose::instructionsOf(reader);
  if (instrs.empty() || (instrs[0].kind != CDL_KIND_CONV2D && instrs[0].kind != CDL_KIND_POOL2D))
    return std::nullopt;
  for (const auto& [id, values] : instrs[0].attrs) {
    if (id != CDL_ATTR_PADS || std::ranges::count(values, 0) == 4) continue;
    if (instrs[0].kind == CDL_KIND_POOL2D)
      return Reach{instrs[0].fn == CDL_POOL2D_MAX ? lowestBits(x.type.elem) : 0, values};
    if (instrs[0].operands.size() < 3 || !instrs[0].operands[2].value) return Reach{0, values};
    const auto zero = instrs[0].operands[2].value->tensor();
    return zero ? std::optional(Reach{loadElement(x.type.elem, zero->bytes.data(), 0), values})
                : std::nullopt;
  }
  return std::nullopt;
}

/// The physical dim that a logical one is, when it is in one piece.
std::optional<size_t> wholeStep(const Layout& layout, uint8_t dim) {
  std::optional<size_t> found;
  for (size_t i = 0; i < layout.steps.size(); ++i)
    if (layout.steps[i].dim == dim) {
      if (found) return std::nullopt;
      found = i;
    }
  return found;
}

/// As large as the largest of the readers needs that agree with the first one on what is in it.
std::shared_ptr<const Halo> haloFor(const Graph& graph, const graph::Value& x) {
  const Layout& layout = x.type.layout;
  const auto h = wholeStep(layout, 2), w = wholeStep(layout, 3);
  if (!h || !w || graph.isOutput(&x)) return nullptr;
  std::optional<Reach> reach;
  for (const Node* user : x.users()) {
    if (user->kind == OpKind::Reshape) return nullptr; // an alias sees no border
    const auto other = reachOf(*user, x);
    if (!other) continue;
    if (!reach) reach = other;
    for (size_t i = 0; reach->fill == other->fill && i < 4; ++i)
      reach->pads[i] = std::max(reach->pads[i], other->pads[i]);
  }
  if (!reach) return nullptr;
  Halo halo{std::vector<uint32_t>(layout.steps.size()), std::vector<uint32_t>(layout.steps.size()),
            reach->fill};
  halo.lo[*h] = static_cast<uint32_t>(reach->pads[0]);
  halo.lo[*w] = static_cast<uint32_t>(reach->pads[1]);
  halo.hi[*h] = static_cast<uint32_t>(reach->pads[2]);
  halo.hi[*w] = static_cast<uint32_t>(reach->pads[3]);
  return std::make_shared<const Halo>(std::move(halo));
}

bool fillsStrided(const capabilities::Target& target, Elem elem) {
  capabilities::InstrDesc fill;
  fill.kind = CDL_KIND_FILL;
  fill.operands = {{elem, {2, 2}, capabilities::OperandClass::affine, false, {}}};
  return target.query(fill).support == capabilities::Support::native;
}

} // namespace

void giveHalos(Graph& graph, const capabilities::Target& target) {
  for (const auto& node : graph.nodes()) {
    if (node->kind == OpKind::Constant || node->kind == OpKind::Reshape ||
        node->results().size() != 1)
      continue;
    if (decompose::epilogueOf(*node)) continue; // it never lies in memory
    graph::Value* value = node->result();
    auto halo = haloFor(graph, *value);
    if (!halo || !fillsStrided(target, value->type.elem)) continue;
    value->type.halo = std::move(halo);
    const auto takes = [&](const Node* each) {
      const Node* epilogue = decompose::epilogueOf(*each);
      return decompose::ask(epilogue ? *epilogue : *each, target).support ==
             capabilities::Support::native;
    };
    if (!takes(node.get()) || !std::ranges::all_of(value->users(), takes))
      value->type.halo = nullptr;
    framePieces(graph, *node, target);
  }
}

} // namespace candela::lowering::layout
