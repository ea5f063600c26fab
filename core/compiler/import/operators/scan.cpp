#include "core/compiler/import/term.h"

/// Running sums and products, and eliminations: what is a loop elsewhere, unrolled here.
namespace candela::import {
namespace {

/// In log2(n) steps each element takes in the one that is 1, 2, 4, ... before it. -0 and 1 change
/// nothing.
template <OpKind kind> Status importRunning(NodeContext& context) {
  const Elem elem = termOf(context, 0).elem();
  Term x = widened(termOf(context, 0));
  const auto given = need(context.neededInts("axis", 1, 1));
  if (given.size() != 1) return badModel("axis has {} values, expected 1", given.size());
  const int64_t axis = need(resolveAxis(given[0], x.rank()));
  const bool reverse = need(context.flagAttr("reverse", false)),
             exclusive = need(context.flagAttr("exclusive", false));
  const bool isSum = kind == OpKind::Add;
  const auto moved = [&](const Term& from, int64_t by, double fill) {
    std::vector<int64_t> lo(from.rank(), 0), hi(from.rank(), 0);
    lo[axis] = reverse ? -by : by;
    hi[axis] = -lo[axis];
    return from.pad(lo, hi, fill);
  };
  if (exclusive && x.dim(axis) > 0) x = moved(x, 1, isSum ? 0 : 1);
  for (int64_t by = 1; by < x.dim(axis); by *= 2)
    x = make(kind, {x, moved(x, by, isSum ? -0.0 : 1)});
  return context.set(x.cast(elem));
}

/// Gaussian elimination of [batch, n, n]: the row of the largest element of the first column
/// changes places with the first row; the determinant is the product of the pivots. 1 of nothing.
Status importDet(NodeContext& context) {
  const Term x = termOf(context, 0);
  const Elem elem = x.elem();
  if (x.rank() < 2 || x.dim(-1) != x.dim(-2))
    return badModel("input of shape {} is not square", shapeText(x.shape()));
  const int64_t size = x.dim(-1);
  if (size > 16) return failure(Code::unsupported, "a determinant of {0}x{0}, at most 16x16", size);
  Shape batch = x.shape();
  batch.resize(batch.size() - 2);
  if (size == 0 || x.count() == 0) return context.set(full(context.build, 1, batch, elem));
  const int64_t count = x.count() / (size * size);
  Term a = widened(x).reshape({count, size, size});
  std::optional<Term> det;
  for (int64_t left = size; left > 1; --left) {
    const Term column = a.slice(2, 0, 1), others = a.slice(2, 1, left - 1), magnitude = abs(column);
    const Term top = reduce(OpKind::ReduceMax, magnitude, {1});
    // The first of the largest: the one with the most rows from it on. None where there is a NaN.
    const Term rank = (left - iota(context.build, left, Elem::i32_)).reshape({1, left, 1});
    const Term best = reduce(OpKind::ReduceMax, select(equal(magnitude, top), rank, 0), {1});
    const Term isPivot = equal(rank, best);
    const Term pivot = reduce(OpKind::ReduceSum, select(isPivot, column, 0), {1}) +
                       select(equal(top, top), 0, top);
    const Term row = reduce(OpKind::ReduceSum, select(isPivot, others, 0), {1});
    const Term factor = select(equal(pivot, 0), 0, column / pivot);
    const Term rest = others - factor * row;
    a = select(isPivot.slice(1, 1, left - 1), rest.slice(1, 0, 1), rest.slice(1, 1, left - 1));
    const Term signedPivot = select(isPivot.slice(1, 0, 1), pivot, -pivot);
    det = det ? *det * signedPivot : signedPivot;
  }
  return context.set((det ? *det * a : a).reshape(batch).cast(elem));
}

constexpr Operator kScanOperators[] = {
    {"CumProd", 2, 2, 1, importRunning<OpKind::Mul>},
    {"CumSum", 2, 2, 1, importRunning<OpKind::Add>},
    {"Det", 1, 1, 1, importDet},
};

} // namespace

std::span<const Operator> scanOperators() { return kScanOperators; }

} // namespace candela::import
