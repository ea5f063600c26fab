#include "core/compiler/import/operators/heads.h"

#include <cmath>

namespace candela::import {

void needBounded(const NodeContext& context) {
  for (const Value* input : context.inputs())
    for (int d = 0; input && d < input->type.rank(); ++d)
      if (input->type.dim(d) > INT32_MAX)
        need(failure(Code::unsupported, "input {} has a dim of more than {}", input->type.text(),
                     INT32_MAX));
}

void needInputs(const NodeContext& context, std::initializer_list<size_t> inputs) {
  for (const size_t input : inputs)
    if (!context.input(input)) need(badModel("input {} is missing", input));
}

Term splitHeads(const Term& x, const char* name, std::optional<int64_t> heads) {
  if (x.rank() == 4) {
    if (heads && *heads != x.dim(1))
      need(badModel("{} is {}, but the attribute says {} heads", name, x.text(), *heads));
    return x;
  }
  if (x.rank() != 3) need(badModel("{} is {}, expected rank 3 or 4", name, x.text()));
  if (!heads)
    need(badModel("{} has rank 3, which needs its number of heads as an attribute", name));
  if (*heads < 1 || x.dim(2) % *heads != 0)
    need(badModel("{} {} does not split into {} heads", name, x.text(), *heads));
  return x.reshape({x.dim(0), x.dim(1), *heads, x.dim(2) / *heads}).transpose({0, 2, 1, 3});
}

Term joinHeads(const Term& x) {
  return x.transpose({0, 2, 1, 3}).reshape({x.dim(0), x.dim(2), x.dim(1) * x.dim(3)});
}

Term turned(const Term& x, const Term& cosine, const Term& sine, bool interleaved) {
  const int64_t pairs = cosine.dim(3), size = 2 * pairs;
  if (size == 0) return x;
  const auto part = [&](int64_t which) {
    return interleaved ? x.slice(3, which, pairs, 2) : x.slice(3, which * pairs, pairs);
  };
  const Term a = part(0), b = part(1);
  const Term real = cosine * a - sine * b, imaginary = sine * a + cosine * b;
  const Term y = interleaved ? concat({real.unsqueeze(4), imaginary.unsqueeze(4)}, 4)
                                   .reshape({x.dim(0), x.dim(1), x.dim(2), size})
                             : concat({real, imaginary}, 3);
  return size < x.dim(3) ? concat({y, x.slice(3, size, x.dim(3) - size)}, 3) : y;
}

Term Heads::grouped(Term x) const {
  const int64_t each = heads() / groups();
  if (each == 1) return x;
  if (x.dim(2) == 1 && x.dim(1) == 1) return x;
  if (x.dim(2) != queries()) x = x.expand({x.dim(0), x.dim(1), queries(), x.dim(3)});
  if (x.dim(1) != heads()) x = x.unsqueeze(2).expand({x.dim(0), 1, each, queries(), x.dim(3)});
  return x.reshape({x.dim(0), x.rank() == 5 ? 1 : groups(), each * queries(), x.dim(-1)});
}

void Heads::check() const {
  if (!isFloat(q.elem()) || !isFloat(v.elem()) || k.elem() != q.elem())
    need(badModel("Q is {}, K {} and V {}", elemName(q.elem()), elemName(k.elem()),
                  elemName(v.elem())));
  if (k.dim(0) != q.dim(0) || k.dim(3) != q.dim(3) ||
      v.shape() != Shape{k.dim(0), k.dim(1), k.dim(2), v.dim(3)})
    need(badModel("queries {}, keys {} and values {} do not belong together", q.text(), k.text(),
                  v.text()));
  if (k.dim(1) == 0 || q.dim(1) % k.dim(1) != 0)
    need(badModel("{} heads of queries are no multiple of {} heads of keys", q.dim(1), k.dim(1)));
}

Attended attend(const Heads& all, const Weighting& weighting) {
  const Elem elem = all.q.elem(),
             precision = weighting.precision == Elem::none ? elem : weighting.precision;
  double scale = weighting.scale;
  std::optional<Term> bias = weighting.bias.values, isMasked;
  if (bias) bias = all.grouped(*bias);
  // Rows that no key is left of give 0.
  if (bias && weighting.bias.mayMaskRows)
    isMasked = equal(reduce(OpKind::ReduceMax, *bias, {3}), -kInfinity);

  Term q = all.grouped(all.q), k = all.k, v = all.v;
  // a product before it is scaled may be beyond what the type holds
  if (elemBits(elem) < 32 && scale > 0) {
    q = q * std::sqrt(scale);
    k = k * std::sqrt(scale);
    scale = 1;
  }
  const bool isPlain = weighting.softcap == 0 && weighting.stage < 0 && !weighting.sink;
  if (isPlain && elemBits(precision) >= elemBits(elem) && v.elem() == elem) {
    std::vector<Term> operands{q, k, v};
    if (bias) operands.push_back(*bias);
    Term y = make(OpKind::Attention, operands, {{"scale", scale}});
    if (isMasked) y = select(*isMasked, 0, y);
    return {all.ungrouped(y), {}};
  }
  Term scores = matmul(q, k.transpose({0, 1, 3, 2}));
  if (scale != 1) scores = scores * scale;
  std::vector<Term> stages{scores};
  if (weighting.softcap > 0) scores = tanh(scores / weighting.softcap) * weighting.softcap;
  stages.push_back(scores);
  if (bias) scores = scores + *bias;
  stages.push_back(scores);
  Term parts = scores.cast(precision);
  if (weighting.sink) {
    const Term sink = all.grouped(weighting.sink->cast(precision));
    const Shape shape = parts.shape();
    parts = softmax(concat({parts, sink.expand({shape[0], shape[1], shape[2], 1})}, 3))
                .slice(3, 0, shape[3]);
  } else {
    parts = softmax(parts);
  }
  if (isMasked) parts = select(*isMasked, 0, parts);
  stages.push_back(parts.cast(elem));
  const Elem common = elemBits(v.elem()) + elemBits(elem) > 64 ? Elem::f64_ : Elem::f32_;
  const Elem wide = v.elem() == elem ? elem : common;
  const Term y = all.ungrouped(matmul(stages[3].cast(wide), v.cast(wide)).cast(elem));
  if (weighting.stage < 0) return {y, {}};
  return {y, all.ungrouped(stages[weighting.stage])};
}

} // namespace candela::import
