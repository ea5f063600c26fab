#include "core/compiler/import/operators/selection.h"

/// NonZero, Compress and Unique: everything at its full length, of which as much is kept as there
/// is.
namespace candela::import {

/// In blocks, so that each element is added to a few times and not log2(n) times.
Term runningSum(const Term& x, int64_t axis) {
  constexpr int64_t kBlock = 32;
  axis = need(resolveAxis(axis, x.rank()));
  const Shape shape = x.shape();
  const int64_t count = shape[axis];
  const std::vector<int64_t> none(shape.size() + 1, 0);
  const auto widths = [&](size_t rank, int64_t at, int64_t width) {
    std::vector<int64_t> all(rank, 0);
    all[at] = width;
    return all;
  };
  const auto back = [&](const Term& from, int64_t at, int64_t by) { // zeros move in
    return from.pad(widths(from.shape().size(), at, by), widths(from.shape().size(), at, -by));
  };
  if (x.count() == 0) return x;
  if (count <= 2 * kBlock) {
    Term sum = x;
    for (int64_t by = 1; by < count; by *= 2) sum = sum + back(sum, axis, by);
    return sum;
  }
  const int64_t blocks = (count - 1) / kBlock + 1;
  Shape split = shape, whole = shape;
  whole[axis] = blocks * kBlock;
  split[axis] = kBlock;
  split.insert(split.begin() + axis, blocks);
  const Term padded =
      x.pad(widths(shape.size(), axis, 0), widths(shape.size(), axis, whole[axis] - count));
  const Term inside = runningSum(padded.reshape(split), axis + 1);
  const Term before =
      back(runningSum(inside.slice(axis + 1, kBlock - 1, 1).squeeze(axis + 1), axis), axis, 1);
  return (inside + before.unsqueeze(axis + 1)).reshape(whole).slice(axis, 0, count);
}

Term putLine(int64_t count, const Term& place, const Term& updates, const char* fn) {
  const Term zeros = full(place.build(), 0, {1, count, 1}, updates.elem());
  if (count == 0 || updates.count() == 0) return zeros.reshape({count});
  return make(OpKind::Put, {zeros, place, updates.reshape({1, updates.count(), 1})},
              {{"fn", std::string(fn)}})
      .reshape({count});
}

Selected selected(const Term& mask) {
  const int64_t size = mask.count();
  const Elem elem = placeElem(size);
  const Term ones = mask.cast(elem);
  const Term number = select(mask, runningSum(ones, 0) - 1, -1);
  const Term places = putLine(size, number, iota(mask.build(), size, elem));
  return {places, number, reduce(OpKind::ReduceSum, ones, {0}, false).cast(Elem::i64_)};
}

namespace {

/// Not zero; a NaN is not.
Term isTrue(const Term& x) { return x.elem() == Elem::bool_ ? x : logicalNot(equal(x, 0)); }

/// A dim of the result for each of x, in which stand the places along it. Of a scalar there is
/// none.
Status importNonZero(NodeContext& context) {
  const Term x = termOf(context, 0);
  const int64_t size = x.count();
  const Selected found = selected(isTrue(x).reshape({size}));
  if (x.rank() == 0)
    return context.trim({{0, full(context.build, 0, {0, size}, Elem::i64_).value(), 1}},
                        found.count.value());
  std::vector<Term> rows;
  int64_t stride = size;
  for (int64_t d = 0; d < x.rank(); ++d) {
    stride = size == 0 ? 1 : stride / x.dim(d);
    Term row = found.places;
    if (stride > 1) row = row / static_cast<double>(stride);
    if (d > 0 && x.dim(d) < size) row = rem(row, static_cast<double>(x.dim(d)));
    rows.push_back((d > 0 && x.dim(d) == 1 ? row * 0 : row).reshape({1, size}));
  }
  return context.trim({{0, concat(rows, 0).cast(Elem::i64_).value(), 1}}, found.count.value());
}

/// The slices along an axis, or the elements, whose condition is true. Those behind its end are
/// left out.
Status importCompress(NodeContext& context) {
  const Term x = termOf(context, 0), condition = termOf(context, 1);
  if (condition.rank() != 1 || condition.elem() != Elem::bool_)
    return badModel("condition is {}, expected a vector of bool", condition.text());
  const auto axis = need(context.maybe<int64_t>("axis"));
  const Term line = axis ? x : x.reshape({x.count()});
  const int64_t at = axis ? need(resolveAxis(*axis, x.rank())) : 0;
  const int64_t extent = line.dim(at), size = std::min(extent, condition.count());
  if (condition.count() > extent) {
    const Selected beyond = selected(condition.slice(0, extent, condition.count() - extent));
    if (const auto count = need(context.contents(beyond.count.value())); count[0] > 0)
      return badModel("{} of a condition of {} are true beyond the dim of {}", count[0],
                      condition.count(), extent);
  }
  const Selected kept = selected(condition.slice(0, 0, size));
  const Term rows = make(OpKind::Gather, {line, kept.places}, {{"axis", at}});
  return context.trim({{0, rows.value(), at}}, kept.count.value());
}

// ---- Unique

/// Whether each element along axis 0 of sorted[n, ..] differs from the one before it. All NaN are
/// one.
Term startsRun(const Term& sorted) {
  const int64_t count = sorted.dim(0);
  Shape first = sorted.shape();
  first[0] = std::min<int64_t>(count, 1);
  const Term top = full(sorted.build(), 1, first, Elem::bool_);
  if (count < 2) return top;
  const Term a = sorted.slice(0, 0, count - 1), b = sorted.slice(0, 1, count - 1);
  Term same = equal(a, b);
  if (isFloat(sorted.elem())) same = logicalOr(same, equal(logicalOr(equal(a, a), equal(b, b)), 0));
  return concat({top, logicalNot(same)}, 0);
}

/// The values of x in order, and their places along axis 0.
std::pair<Term, Term> sortFirst(const Term& x) {
  const auto results = need(
      x.build().addAll(OpKind::Sort, {x.value()},
                       {{"axis", int64_t(0)}, {"k", x.dim(0)}, {"descending", int64_t(0)}}, 2));
  return {Term(x.build(), results[0]), Term(x.build(), results[1])};
}

/// x[n, m]: how many different values of its column are below each element.
Term denseRanks(const Term& x) {
  const auto [sorted, order] = sortFirst(x);
  const int64_t columns = x.dim(1), count = x.count();
  const Elem elem = placeElem(count);
  const Term rank = runningSum(startsRun(sorted).cast(elem), 0) - 1;
  const Term place =
      order.cast(elem) * static_cast<double>(columns) + iota(x.build(), columns, elem);
  return putLine(count, place.reshape({count}), rank.reshape({count})).reshape(x.shape());
}

/// One key for each row of x[n, m], in lexicographic order: ranks of columns, two of which become
/// one until one is left.
Term rowKeys(const Term& x) {
  if (x.dim(1) == 0) return full(x.build(), 0, {x.dim(0)}, Elem::i32_);
  Term keys = x;
  const int64_t rows = x.dim(0);
  const Elem elem = rows <= INT16_MAX ? Elem::i32_ : Elem::i64_;
  while (keys.dim(1) > 1) {
    const Term ranks = denseRanks(keys).cast(elem);
    const int64_t pairs = ranks.dim(1) / 2, odd = ranks.dim(1) % 2;
    const Term joined =
        ranks.slice(1, 0, pairs, 2) * static_cast<double>(rows) + ranks.slice(1, 1, pairs, 2);
    keys = odd ? concat({joined, ranks.slice(1, 2 * pairs, 1)}, 1) : joined;
  }
  return keys.reshape({rows});
}

/// Elements, or slices along an axis, each once: in order, or as they come first. NaN comes last,
/// and once.
Status importUnique(NodeContext& context) {
  const Term x = termOf(context, 0);
  const bool inOrder = need(context.flagAttr("sorted", true));
  const auto axis = need(context.maybe<int64_t>("axis"));
  const int64_t at = axis ? need(resolveAxis(*axis, x.rank())) : 0;
  const Term line = axis ? x : x.reshape({x.count()});
  const Term comparable = line.elem() == Elem::bool_ ? line.cast(Elem::u8_) : line;
  const int64_t size = line.dim(at);
  std::vector<int64_t> perm{at};
  for (int64_t d = 0; d < line.rank(); ++d)
    if (d != at) perm.push_back(d);
  const Term key = axis
                       ? rowKeys(Term(context.build,
                                      context.build.flatten(comparable.transpose(perm).value(), 1)))
                       : comparable;

  const auto [sorted, order] = sortFirst(key);
  const Elem elem = order.elem();
  const Term all = iota(context.build, size, elem);
  const Selected runs = selected(startsRun(sorted));
  const Term run = runningSum(startsRun(sorted).cast(elem), 0) - 1;
  const auto take = [&](const Term& from, const Term& index) {
    return size == 0 ? from : takeFlat(from, index);
  };
  // Of each run: the place of its first in x, its length; of each element of x: its run.
  Term first = take(order, runs.places.cast(elem)),
       length = putLine(size, run, full(context.build, 1, {size}, elem), "add");
  Term inverse = putLine(size, order, run);
  if (!inOrder) {
    const Term isRun = less(all, runs.count.cast(elem));
    const auto [firsts, runOrder] = sortFirst(select(isRun, first, static_cast<double>(size)));
    first = min(firsts, static_cast<double>(std::max<int64_t>(size - 1, 0)));
    length = take(length, runOrder);
    inverse = take(putLine(size, runOrder, all), inverse);
  }
  context.set(2, inverse.cast(Elem::i64_).value());
  const Term values = make(OpKind::Gather, {line, first}, {{"axis", at}});
  return context.trim({{0, values.value(), at},
                       {1, first.cast(Elem::i64_).value(), 0},
                       {3, length.cast(Elem::i64_).value(), 0}},
                      runs.count.value());
}

constexpr Operator kSelectionOperators[] = {
    {"Compress", 2, 2, 1, importCompress},
    {"NonZero", 1, 1, 1, importNonZero},
    {"Unique", 1, 1, 4, importUnique},
};

} // namespace

std::span<const Operator> selectionOperators() { return kSelectionOperators; }

} // namespace candela::import
