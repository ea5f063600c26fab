#include <algorithm>
#include <ranges>

#include "core/compiler/lowering/decompose/lower.h"
#include "core/compiler/lowering/layout/layout.h"

namespace candela::lowering::layout {

using graph::Node;
using graph::OpKind;

namespace {

/// The pieces of a `place` lie side by side along the outermost physical dim that is not 1, outside
/// of any border.
bool liesInRows(const Node& place) {
  const graph::TensorType& type = place.result()->type;
  const Shape dims = type.physicalDims();
  const auto first = static_cast<size_t>(
      std::ranges::find_if(dims, [](int64_t d) { return d != 1; }) - dims.begin());
  if (first == dims.size() || type.halo->lo[first] || type.halo->hi[first] || place.intAttr("fill"))
    return false;
  const std::vector<int64_t> offsets = place.intsAttr("offsets"),
                             steps = place.intsAttr("steps", type.dims.size(), 1);
  const size_t rank = type.dims.size(), along = type.layout.steps[first].dim;
  for (size_t i = 0; i < offsets.size(); ++i)
    if (i % rank != along && offsets[i] != 0) return false;
  return std::ranges::count(steps, 1) == std::ssize(steps) &&
         std::ranges::all_of(place.operands(), [&](const graph::Value* piece) {
           return piece->type.layout == type.layout &&
                  std::ranges::equal(piece->type.physicalDims() | std::views::drop(first + 1),
                                     dims | std::views::drop(first + 1));
         });
}

} // namespace

void framePieces(graph::Graph& graph, const Node& place, const capabilities::Target& target) {
  const std::shared_ptr<const graph::Halo> halo = place.result()->type.halo;
  if (place.kind != OpKind::Place || !halo || !liesInRows(place)) return;
  for (graph::Value* piece : place.operands()) {
    const Node* producer = piece->producer;
    if (!producer || producer->kind == OpKind::Constant || producer->kind == OpKind::Reshape ||
        piece->type.halo)
      continue;
    if (producer->results().size() != 1 || piece->users().size() != 1 || graph.isOutput(piece))
      continue;
    piece->type.halo = halo;
    const auto takes = [&](const Node& node) {
      return decompose::ask(node, target).support == capabilities::Support::native;
    };
    if (!takes(*producer) || !takes(place)) piece->type.halo = nullptr;
  }
}

} // namespace candela::lowering::layout
