#include "core/compiler/lowering/layout/layout.h"

#include <algorithm>
#include <cstring>

#include "core/compiler/lowering/decompose/describe.h"
#include "core/compiler/lowering/layout/islands.h"

namespace candela::lowering::layout {

using graph::Graph;
using graph::Node;
using graph::OpKind;
using graph::Value;

namespace {

constexpr int64_t kMaxGrowthBytes = 4096;

/// Calls visit(offset) for every index of `dims` in row-major order, offset = start + sum(i[d] *
/// strides[d]).
template <typename Visit>
void forEachOffset(const Shape& dims, const std::vector<int64_t>& strides, int64_t start,
                   const Visit& visit) {
  if (elementCount(dims).value_or(0) == 0) return;
  std::vector<int64_t> index(dims.size(), 0);
  for (int64_t offset = start;;) {
    visit(offset);
    size_t d = dims.size();
    while (d-- > 0) {
      offset += strides[d];
      if (++index[d] < dims[d]) break;
      offset -= index[d] * strides[d];
      index[d] = 0;
    }
    if (d == SIZE_MAX) return;
  }
}

/// Row-major elements into blocks; what blocks have over is 0.
Result<Payload> packBlocks(const Node& node) {
  const graph::TensorType& type = node.result()->type;
  CDL_ASSIGN(const Tensor from, node.operand(0)->tensor());
  CDL_ASSIGN(Tensor to, Tensor::zeros(type.elem, type.physicalDims()));
  // What each index adds to the place of an element, by dim.
  std::vector<std::vector<int64_t>> moves;
  for (int d = 0; d < type.rank(); ++d) moves.emplace_back(type.dim(d), 0);
  const auto strides = denseStrides(type.physicalDims());
  for (size_t s = 0; s < strides.size(); ++s) {
    const graph::Layout::Step& step = type.layout.steps[s];
    std::vector<int64_t>& move = moves[step.dim];
    for (size_t i = 0; i < move.size(); ++i) {
      const int64_t index = static_cast<int64_t>(i) / type.layout.stepOf(s);
      move[i] += (step.factor ? index % step.factor : index) * strides[s];
    }
  }
  const size_t size = elemBits(type.elem) / 8;
  const std::byte* in = from.bytes.data();
  std::vector<size_t> index(moves.size(), 0);
  for (int64_t count = type.count(); count-- > 0; in += size) {
    int64_t offset = 0;
    for (size_t d = 0; d < moves.size(); ++d) offset += moves[d][index[d]];
    std::memcpy(to.bytes.mutableData() + offset * size, in, size);
    for (size_t d = moves.size(); d-- > 0 && ++index[d] == moves[d].size();) index[d] = 0;
  }
  return Payload::data(std::move(to));
}

Result<Payload> packAffine(const Node& node) {
  const Value& x = *node.operand(0);
  const graph::TensorType& type = node.result()->type;
  if (x.payload().form() == Payload::Form::splat)
    return Payload::splat(type.elem, type.physicalCount(), x.payload().splatBits());
  if (decompose::convertsLayout(node)) return packBlocks(node);
  CDL_ASSIGN(const Tensor from, x.tensor());
  CDL_ASSIGN(Tensor to, Tensor::zeros(type.elem, type.shape()));
  const size_t size = elemBits(type.elem) / 8;
  std::byte* out = to.bytes.mutableData();
  forEachOffset(type.shape(), node.intsAttr("strides"), node.intAttr("offset"),
                [&](int64_t offset) {
                  std::memcpy(out, from.bytes.data() + offset * size, size);
                  out += size;
                });
  return Payload::data(std::move(to));
}

Result<Payload> packPlace(const Node& node) {
  const graph::TensorType& type = node.result()->type;
  const auto fill = static_cast<uint64_t>(node.intAttr("value"));
  CDL_ASSIGN(Tensor to, Payload::splat(type.elem, type.count(), fill).materialize(type.shape()));
  const size_t size = elemBits(type.elem) / 8, rank = type.dims.size();
  const auto dense = denseStrides(type.shape());
  const auto offsets = node.intsAttr("offsets");
  const auto steps = node.intsAttr("steps", rank, 1);
  std::byte* out = to.bytes.mutableData();
  for (size_t i = 0; i < node.operands().size(); ++i) {
    CDL_ASSIGN(const Tensor from, node.operand(i)->tensor());
    int64_t start = 0;
    std::vector<int64_t> strides(rank);
    for (size_t d = 0; d < rank; ++d) {
      start += offsets[i * rank + d] * dense[d];
      strides[d] = steps[d] * dense[d];
    }
    const std::byte* in = from.bytes.data();
    forEachOffset(from.dims, strides, start, [&](int64_t offset) {
      std::memcpy(out + offset * size, in, size);
      in += size;
    });
  }
  return Payload::data(std::move(to));
}

bool isPackable(const Graph& graph, const Node& node) {
  if (node.kind != OpKind::Affine && node.kind != OpKind::Reshape && node.kind != OpKind::Place)
    return false;
  const graph::TensorType& type = node.result()->type;
  if (decompose::convertsLayout(node))
    return node.operand(0)->isConstant(); // its reader takes no other form
  if (graph.isOutput(node.result())) return false;
  int64_t bytes = 0;
  for (const Value* operand : node.operands()) {
    if (!operand->isConstant() || !operand->type.layout.isRowMajor()) return false;
    bytes += static_cast<int64_t>(operand->payload().sizeBytes());
  }
  if (node.kind == OpKind::Reshape) return true;
  if (elemBits(type.elem) < 8) return false; // packed storage moves only as a whole
  const bool splat =
      node.kind == OpKind::Affine && node.operand(0)->payload().form() == Payload::Form::splat;
  return splat ||
         static_cast<int64_t>(elemBytes(type.elem, type.count())) - bytes <= kMaxGrowthBytes;
}

Result<Payload> pack(const Node& node) {
  switch (node.kind) {
  case OpKind::Affine: return packAffine(node);
  case OpKind::Place: return packPlace(node);
  default: return node.operand(0)->payload();
  }
}

} // namespace

Result<int> chooseLayouts(Graph& graph, const capabilities::Target& target) {
  formIslands(graph, target);
  int count = 0;
  for (Node* node : graph.snapshot()) {
    if (!isPackable(graph, *node)) continue;
    CDL_ASSIGN(Payload payload, pack(*node));
    graph::Provenance provenance;
    for (const Value* operand : node->operands())
      graph::mergeProvenance(provenance, operand->producer->provenance);
    graph::mergeProvenance(provenance, node->provenance);
    graph.replaceAllUses(node->result(), graph.addConstant(std::move(payload), node->result()->type,
                                                           provenance, node));
    graph.erase(node);
    ++count;
  }
  graph.eraseDead();
  return count;
}

} // namespace candela::lowering::layout
