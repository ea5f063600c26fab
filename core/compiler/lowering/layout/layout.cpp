#include "core/compiler/lowering/layout/layout.h"

#include <algorithm>
#include <cstring>
#include <span>

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

/// How the indices of a dim step through both forms of a value, in elements.
struct DimWalk {
  int64_t from = 0;        // between neighbours, row-major
  std::vector<int64_t> to; // what each index adds to the place in blocks
};

std::vector<DimWalk> walksOf(const graph::TensorType& type) {
  std::vector<DimWalk> walks;
  const auto dense = denseStrides(type.shape());
  for (int d = 0; d < type.rank(); ++d)
    walks.push_back({dense[static_cast<size_t>(d)], std::vector<int64_t>(type.dim(d), 0)});
  const auto strides = denseStrides(type.physicalDims());
  for (size_t s = 0; s < strides.size(); ++s) {
    const graph::Layout::Step& step = type.layout.steps[s];
    std::vector<int64_t>& to = walks[step.dim].to;
    for (size_t i = 0; i < to.size(); ++i) {
      const int64_t index = static_cast<int64_t>(i) / type.layout.stepOf(s);
      to[i] += (step.factor ? index % step.factor : index) * strides[s];
    }
  }
  return walks;
}

/// Some neighbours of a dim, which are written side by side.
struct Run {
  const DimWalk& walk;
  size_t first, end;
};

template <size_t Size>
void copyRuns(std::span<const DimWalk> outer, const Run& run, const std::byte* from,
              std::byte* to) {
  constexpr auto kSize = static_cast<int64_t>(Size);
  if (outer.empty()) {
    to += run.walk.to[run.first] * kSize;
    from += static_cast<int64_t>(run.first) * run.walk.from * kSize;
    const size_t count = run.end - run.first;
    // A copy of its own: for all that the compiler knows, the bytes that are written hold the walk.
    const int64_t step = run.walk.from * kSize;
    if (step == kSize) {
      std::memcpy(to, from, count * Size);
      return;
    }
    for (size_t i = 0; i < count; ++i) {
      std::memcpy(to, from, Size);
      to += Size;
      from += step;
    }
    return;
  }
  const DimWalk& walk = outer.front();
  for (const int64_t place : walk.to) {
    copyRuns<Size>(outer.subspan(1), run, from, to + place * kSize);
    from += walk.from * kSize;
  }
}

/// Copies run by run of the dim that is innermost in blocks, such a run innermost: what is written
/// lies side by side, and what is read are a few streams.
template <size_t Size>
void copyBlocks(const graph::TensorType& type, const std::byte* from, std::byte* to) {
  std::vector<DimWalk> outer = walksOf(type);
  const graph::Layout::Step& innermost = type.layout.steps.back();
  const DimWalk inner = std::move(outer[innermost.dim]);
  outer.erase(outer.begin() + innermost.dim);
  const size_t count = inner.to.size();
  const size_t length = innermost.factor ? static_cast<size_t>(innermost.factor) : count;
  for (size_t first = 0; first < count; first += length)
    copyRuns<Size>(outer, {inner, first, std::min(first + length, count)}, from, to);
}

/// Row-major elements into blocks; what blocks have over is 0.
Result<Payload> packBlocks(const Node& node) {
  const graph::TensorType& type = node.result()->type;
  CDL_ASSIGN(const Tensor from, node.operand(0)->tensor());
  CDL_ASSIGN(Tensor to, Tensor::zeros(type.elem, type.physicalDims()));
  if (type.count() == 0) return Payload::data(std::move(to));
  const std::byte* in = from.bytes.data();
  std::byte* out = to.bytes.mutableData();
  switch (elemBits(type.elem)) {
  case 8: copyBlocks<1>(type, in, out); break;
  case 16: copyBlocks<2>(type, in, out); break;
  case 32: copyBlocks<4>(type, in, out); break;
  default: copyBlocks<8>(type, in, out);
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

/// Computes what moves constants alone; how many nodes that were.
Result<int> packConstants(Graph& graph) {
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

} // namespace

Result<int> chooseLayouts(Graph& graph, const capabilities::Target& target) {
  // Rows ask for weights that are constants, and those of a transposed convolution are moved first.
  CDL_ASSIGN(const int before, packConstants(graph));
  formIslands(graph, target);
  CDL_ASSIGN(const int behind, packConstants(graph));
  return before + behind;
}

} // namespace candela::lowering::layout
