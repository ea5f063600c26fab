#include <cmath>

#include "core/compiler/import/term.h"

namespace candela::import {
namespace {

constexpr int64_t kMostRange = int64_t(1) << 40;

/// ceil((limit - start) / delta) as i64, at least 0; -1 where that is no number or beyond 64 bits.
Term countOf(const Term& start, const Term& limit, const Term& delta) {
  if (isFloat(start.elem())) {
    const Term count =
        ceil((limit.cast(Elem::f64_) - start.cast(Elem::f64_)) / delta.cast(Elem::f64_));
    const Term isKnown = less(count, static_cast<double>(kMostRange)); // not of NaN
    return select(isKnown, max(select(isKnown, count, 0), 0), -1).cast(Elem::i64_);
  }
  const Term first = start.cast(Elem::i64_), last = limit.cast(Elem::i64_),
             each = delta.cast(Elem::i64_);
  const Term isDown = less(each, 0);
  const Term from = select(isDown, last, first), to = select(isDown, first, last), span = to - from;
  const Term count = select(less(from, to), (span - 1) / select(isDown, -each, each) + 1, 0);
  const Term isBad = logicalOr(equal(each, 0), logicalAnd(less(from, to), less(span, 0)));
  return select(isBad, -1, count);
}

/// start + i * delta; halves are computed in what stash_type names. Only the count must be known
/// for the shape.
Status importRange(NodeContext& context) {
  const char* const names[3] = {"start", "limit", "delta"};
  const Elem elem = context.input(0)->type.elem;
  std::vector<Term> given;
  for (size_t i = 0; i < 3; ++i) {
    const Term x = termOf(context, i);
    if (x.elem() != elem || x.count() != 1)
      return badModel("{} is {}, expected a scalar of {}", names[i], x.text(), elemName(elem));
    given.push_back(x.reshape({}));
  }
  const int64_t stash = context.opset < 27 ? 1 : attrOf<int64_t>(context, "stash_type", 1);
  if (stash != 1 && stash != 11) return badModel("stash_type is {}, expected 1 or 11", stash);
  const bool isHalf = elem == Elem::f16_ || elem == Elem::bf16_;
  const Elem stashed = stash == 1 ? Elem::f32_ : Elem::f64_;
  const Elem wide = isHalf ? stashed : elem;
  const auto& [start, limit, delta] = std::tie(given[0], given[1], given[2]);
  const int64_t count = need(context.contents(countOf(start, limit, delta).value())).front();
  if (count < 0 || count > kMostRange) return badModel("a range by {} has no end", delta.text());
  const auto first = Builder::knownInts(start.value()), each = Builder::knownInts(delta.value());
  if (first && each)
    return context.set(
        context.build.constant(Payload::iota(elem, count, first->front(), each->front()), {count}));
  return context.set(
      (iota(context.build, count).cast(wide) * delta.cast(wide) + start.cast(wide)).cast(elem));
}

constexpr Operator kRangeOperators[] = {
    {"Range", 3, 3, 1, importRange},
};

} // namespace

std::span<const Operator> rangeOperators() { return kRangeOperators; }

} // namespace candela::import
