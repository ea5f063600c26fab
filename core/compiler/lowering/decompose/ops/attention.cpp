// softmax(q . transposed k * scale + mask) . v, whole where its scores are few, else by head and
// block of rows: rows of scores do not meet, so that a block is computed as the whole is, and only
// one block of scores lies in memory.
#include <algorithm>
#include <numeric>

#include "core/compiler/capabilities/views.h"
#include "core/compiler/lowering/decompose/shared.h"

namespace candela::lowering::decompose {

namespace {

constexpr int64_t kWholeBytes = int64_t(4) << 20; // of scores that are computed at once
// of the scores of one block: they stay in a cache
constexpr int64_t kBlockBytes = int64_t(1) << 20;
constexpr int64_t kMostBlocks = 128; // each is three instructions
constexpr int64_t kFewRows = 16;

/// q[.., rows, d], keys[.., d, t], v[.., t, e]. Of halves the scores are f32 where the target can:
/// before the factor they may be larger than any half.
Value attend(Lowering& l, const Node& node, Value q, Value keys, Value v, Value mask) {
  const Elem elem = q->type.elem, inner = l.wide(elem);
  Value scores = matmulAnyRank(l, l.cast(q, inner), l.cast(keys, inner), inner);
  if (const double scale = node.floatAttr("scale"); scale != 1)
    scores = l.mul(scores, l.scalar(inner, scale));
  if (mask) scores = l.add(scores, l.cast(mask, inner));
  return matmulAnyRank(l, l.cast(l.node(OpKind::Softmax, {scores}), elem), v, elem);
}

/// How scores[heads, rows, t] are cut: so many heads and rows at once.
struct Blocks {
  int64_t heads = 1, rows = 1;
};

Blocks blocksOf(int64_t heads, int64_t rows, int64_t rowBytes) {
  Blocks block;
  block.rows =
      std::clamp(kBlockBytes / rowBytes / kFewRows * kFewRows, std::min(kFewRows, rows), rows);
  if (block.rows == rows)
    block.heads = std::clamp(kBlockBytes / (rows * rowBytes), int64_t(1), heads);
  const auto count = [&] {
    return ((heads + block.heads - 1) / block.heads) * ((rows + block.rows - 1) / block.rows);
  };
  while (count() > kMostBlocks) (block.rows < rows ? block.rows : block.heads) *= 2;
  return {std::min(block.heads, heads), std::min(block.rows, rows)};
}

/// How the mask walks scores[heads, rows, t]; nothing where no one stride walks its heads.
std::optional<std::vector<int64_t>> maskStrides(const Shape& mask, const Shape& scores) {
  const std::vector<int64_t> strides = capabilities::broadcastStrides(mask, scores);
  const size_t batch = scores.size() - 2;
  const capabilities::Walk walk = capabilities::coalesce(
      {Shape(scores.begin(), scores.end() - 2), {{strides.begin(), strides.end() - 2}}});
  if (walk.dims.size() > 1) return std::nullopt;
  return std::vector<int64_t>{walk.dims.empty() ? 0 : walk.strides[0][0], strides[batch],
                              strides[batch + 1]};
}

} // namespace

Result<Values> lowerAttention(Lowering& l, const Node& node) {
  Value q = node.operand(0), k = node.operand(1), v = node.operand(2), mask = node.operand(3);
  std::vector<int64_t> swap(q->type.dims.size());
  std::iota(swap.begin(), swap.end(), 0);
  std::swap(swap.back(), swap[swap.size() - 2]);
  Value keys = l.transpose(k, swap);
  const Shape from = q->type.shape(), kept = node.result()->type.shape();
  const int64_t rows = from[from.size() - 2], d = from.back(), t = k->type.dim(-2),
                e = v->type.dim(-1);
  const Shape batch(from.begin(), from.end() - 2);
  const int64_t heads = *elementCount(batch);
  const auto hasBatch = [&](Value value) {
    const Shape shape = value->type.shape();
    return Shape(shape.begin(), shape.end() - 2) == batch;
  };
  Shape scores = from;
  scores.back() = t;
  std::vector<int64_t> byMask(3, 0);
  const auto walked = mask ? maskStrides(mask->type.shape(), scores) : byMask;
  const auto count = elementCount(scores);
  const bool isLarge =
      count &&
      static_cast<int64_t>(elemBytes(q->type.elem, static_cast<uint64_t>(*count))) > kWholeBytes;
  if (!isLarge || !hasBatch(k) || !hasBatch(v) || !walked)
    return Values{attend(l, node, q, keys, v, mask)};

  byMask = *walked;
  const int64_t rowBytes = t * elemBits(q->type.elem) / 8;
  const Blocks block = blocksOf(heads, rows, rowBytes);
  // Contiguous parts: none of them is copied where its whole lies in memory of its own.
  const auto part = [&](Value whole, int64_t offset, Shape dims) {
    return l.affine(whole, offset, dims, denseStrides(dims));
  };
  std::vector<Value> pieces;
  std::vector<int64_t> offsets;
  for (int64_t head = 0; head < heads; head += block.heads) {
    const int64_t some = std::min(block.heads, heads - head);
    Value ownKeys = part(keys, head * d * t, {some, d, t}),
          ownValues = part(v, head * t * e, {some, t, e});
    for (int64_t row = 0; row < rows; row += block.rows) {
      const int64_t few = std::min(block.rows, rows - row);
      Value ownMask = nullptr;
      if (mask) {
        Shape dims{some, few, t};
        for (size_t d = 0; d < dims.size(); ++d)
          if (byMask[d] == 0) dims[d] = 1; // the mask is broadcast along it
        ownMask = l.affine(mask, head * byMask[0] + row * byMask[1], dims, byMask);
      }
      pieces.push_back(attend(l, node, part(q, (head * rows + row) * d, {some, few, d}), ownKeys,
                              ownValues, ownMask));
      offsets.insert(offsets.end(), {head, row, 0});
    }
  }
  return Values{l.reshape(
      l.place(std::move(pieces), {heads, rows, e}, std::move(offsets), {}, 0, false), kept)};
}

} // namespace candela::lowering::decompose
