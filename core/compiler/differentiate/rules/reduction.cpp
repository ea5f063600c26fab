// Reductions: what comes back goes to every element, or to those that made the result.
#include <algorithm>

#include "core/compiler/differentiate/rules.h"

namespace candela::differentiate {
namespace {

/// What a reduction leaves, with a dim of 1 where one was reduced.
Term kept(const Term& result, const Term& x, const std::vector<int64_t>& axes) {
  Shape shape = x.shape();
  for (const int64_t axis : axes) shape[graph::wrapAxis(axis, static_cast<int>(x.rank()))] = 1;
  return result.reshape(shape);
}

int64_t countOf(const Term& x, const std::vector<int64_t>& axes) {
  int64_t count = 1;
  for (const int64_t axis : axes) count *= x.dim(axis);
  return count;
}

void giveSum(const Step& step, const std::vector<int64_t>& axes) {
  step.give(0, [&] { return kept(step.dy(), step.x(0), axes).expand(step.x(0).shape()); });
}

/// Equals share.
void giveExtreme(const Step& step, const std::vector<int64_t>& axes) {
  step.give(0, [&] {
    const Term x = step.x(0);
    const Term isIt = equal(x, kept(step.y(), x, axes));
    const Term each =
        kept(step.dy(), x, axes) / reduce(OpKind::ReduceSum, indicator(isIt, x.elem()), axes);
    return where(isIt, each);
  });
}

/// Along dim 1 of [outer, count]: the elements `by` places before (or behind, where it is below 0),
/// and 1 where there is none.
Term shifted(const Term& x, int64_t by) {
  const int64_t outer = x.dim(0);
  const int64_t distance = std::abs(by);
  const int64_t left = x.dim(1) - distance;
  const Term ones = full(x.writer(), 1, {outer, distance}, x.elem());
  const Term rest = x.slice(1, by > 0 ? 0 : distance, left);
  const std::vector<Term> pieces = by > 0 ? std::vector{ones, rest} : std::vector{rest, ones};
  return make(OpKind::Concat, pieces, {{"axis", int64_t{1}}});
}

/// The product of all elements before each one (sign 1) or behind it (-1), in log2(count) steps:
/// dividing the whole product would lose those with a 0.
Term productBeside(const Term& x, int64_t sign) {
  Term product = shifted(x, sign);
  for (int64_t reach = 1; reach < x.dim(1); reach *= 2)
    product = product * shifted(product, sign * reach);
  return product;
}

void giveProduct(const Step& step, const std::vector<int64_t>& axes) {
  step.give(0, [&] {
    const Term x = step.x(0);
    const Term dy = kept(step.dy(), x, axes).expand(x.shape());
    const int64_t count = countOf(x, axes);
    if (count <= 1 || x.count() == 0) return dy;
    std::vector<int64_t> order = range(0, x.rank());
    std::stable_partition(order.begin(), order.end(), [&](int64_t d) {
      return std::ranges::none_of(axes, [&](int64_t axis) {
        return graph::wrapAxis(axis, static_cast<int>(x.rank())) == d;
      });
    });
    const Term sorted = x.transpose(order);
    const Term rows = sorted.reshape({x.count() / count, count});
    const Term others = productBeside(rows, 1) * productBeside(rows, -1);
    std::vector<int64_t> back(order.size());
    for (size_t d = 0; d < order.size(); ++d)
      back[static_cast<size_t>(order[d])] = static_cast<int64_t>(d);
    return dy * others.reshape(sorted.shape()).transpose(back);
  });
}

} // namespace

void reduceSumRule(const Step& step) { giveSum(step, step.node.intsAttr("axes")); }

void reduceMeanRule(const Step& step) {
  const std::vector<int64_t> axes = step.node.intsAttr("axes");
  step.give(0, [&] {
    const Term x = step.x(0);
    const Term each = kept(step.dy(), x, axes) / static_cast<double>(countOf(x, axes));
    return each.expand(x.shape());
  });
}

void reduceExtremeRule(const Step& step) { giveExtreme(step, step.node.intsAttr("axes")); }

void reduceProdRule(const Step& step) { giveProduct(step, step.node.intsAttr("axes")); }

/// The lowered form, of [o, r, i] over r.
void reduceRule(const Step& step) {
  const std::string fn = step.node.stringAttr("fn");
  if (fn == "sum") return giveSum(step, {1});
  if (fn == "prod") return giveProduct(step, {1});
  giveExtreme(step, {1});
}

} // namespace candela::differentiate
