#include <algorithm>
#include <array>
#include <numeric>

#include "core/reference/kinds.h"
#include "core/support/kinds.h"
#include "core/support/out_of_memory.h"
#include "core/support/text/expr.h"
#include "core/support/text/literal.h"

namespace candela::reference {

Scalar scattered(uint16_t scatterFn, Elem elem, const Scalar& old, const Scalar& update) {
  static constexpr uint16_t kBinary[] = {CDL_BINARY_ADD, CDL_BINARY_MIN, CDL_BINARY_MAX,
                                         CDL_BINARY_MUL};
  return scatterFn == CDL_SCATTER_SET
             ? update
             : binary(kBinary[scatterFn - CDL_SCATTER_ADD], elem, old, update);
}

void lookUp(const Array& x, const Array& table, Array& y) {
  const Whole lowest = integerRange(x.elem).lowest;
  for (int64_t i = 0; i < y.count(); ++i) {
    const auto place = static_cast<int64_t>(x.whole[i] - lowest);
    if (x.elem != Elem::i16_) {
      y.set(i, table.at(place));
      continue;
    }
    const Whole base = table.whole[place / 128], next = table.whole[place / 128 + 1];
    y.whole[i] = base + (((next - base) * (place % 128) + 64) >> 7);
  }
}

/// The indices are already counted from 0.
void referencePut(const graph::Node& node, Operands in, Results out) {
  const Array &index = *in[1], &updates = *in[2];
  Array& y = out[0];
  y.real = in[0]->real;
  y.whole = in[0]->whole;
  const uint16_t fn = parseFn(CDL_KIND_SCATTER, node.stringAttr("fn")).value();
  const Around around(y.dims, 1);
  int64_t u = 0;
  for (int64_t o = 0; o < around.outer; ++o)
    for (const Whole k : index.whole)
      for (int64_t i = 0; i < around.inner; ++i, ++u) {
        if (k < 0 || k >= around.count) continue;
        const int64_t at = (o * around.count + static_cast<int64_t>(k)) * around.inner + i;
        y.set(at, scattered(fn, y.elem, y.at(at), updates.at(u)));
      }
}

void sort(const Array& x, size_t axis, bool descending, Array& y, Array& places) {
  const Around all(x.dims, axis), kept(y.dims, axis);
  const auto isNan = [&](const Scalar& v) { return isFloat(x.elem) && v.real != v.real; };
  std::vector<int64_t> order(static_cast<size_t>(all.count));
  for (int64_t line = 0; line < all.outer * all.inner; ++line) {
    const auto below = [&](int64_t p, int64_t q) {
      const Scalar a = x.at(all.at(line, p)), b = x.at(all.at(line, q));
      return isNan(b) ? !isNan(a) : compare(CDL_COMPARE_LT, x.elem, a, b);
    };
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t p, int64_t q) { return descending ? below(q, p) : below(p, q); });
    for (int64_t k = 0; k < kept.count; ++k) {
      const int64_t place = order[static_cast<size_t>(k)];
      y.set(kept.at(line, k), x.at(all.at(line, place)));
      places.whole[kept.at(line, k)] = place;
    }
  }
}

void referenceSort(const graph::Node& node, Operands in, Results out) {
  sort(*in[0], axisOf(node.intAttr("axis"), in[0]->dims), node.intAttr("descending") != 0, out[0],
       out[1]);
}

void referenceReduce(const graph::Node& node, Operands in, Results out) {
  fold(parseFn(CDL_KIND_REDUCE, node.stringAttr("fn")).value(), *in[0],
       {in[0]->dims[0], 1, in[0]->dims[2]}, out[0]);
}

/// y[b,m,n] = sum over k of (a[b,m,k] - a_zero) * (b[b,k,n] - b_zero[n]).
void referenceBatchMatmul(const graph::Node&, Operands in, Results out) {
  addProducts(in[2] ? withoutZero(*in[0], *in[2]) : *in[0],
              in[3] ? withoutZero(*in[1], *in[3]) : *in[1], out[0]);
}

void referenceRound(const graph::Node& node, Operands in, Results out) {
  mapElements({CDL_KIND_CONVERT, parseFn(CDL_KIND_CONVERT, node.stringAttr("mode")).value(),
               in[0]->elem, out[0].elem, node.intAttr("saturate") != 0},
              in, out[0]);
}

void rescale(Operands in, int64_t left, int64_t leftB, Whole low, Whole high, Array& y) {
  std::vector<Strides> strides;
  for (const Array* operand : in) strides.push_back(broadcastStrides(operand->dims, y.dims));
  int64_t i = 0;
  forEach(y.dims, strides, [&](const int64_t* at) {
    Term sum[2] = {{in[0]->whole[at[0]], in[1]->whole[at[1]], left}, {}};
    if (in.size() > 4) sum[1] = {in[4]->whole[at[4]], in[5]->whole[at[5]], leftB};
    const Whole shift = std::max<Whole>(in[2]->whole[at[2]], 0);
    y.whole[i++] = rescale({sum, in.size() / 2 - 1}, static_cast<int64_t>(shift),
                           in[3]->whole[at[3]], low, high);
  });
}

void referenceRescale(const graph::Node& node, Operands in, Results out) {
  const IntegerRange range = integerRange(out[0].elem);
  const Whole low = node.hasAttr("clamp_min")
                        ? std::max<Whole>(node.intAttr("clamp_min"), range.lowest)
                        : range.lowest;
  const Whole high = node.hasAttr("clamp_max")
                         ? std::min<Whole>(node.intAttr("clamp_max"), range.highest)
                         : range.highest;
  rescale(in.first(in[4] ? 6 : 4), node.intAttr("left_shift"), node.intAttr("b_left_shift"), low,
          high, out[0]);
}

void referenceTable(const graph::Node&, Operands in, Results out) {
  lookUp(*in[0], *in[1], out[0]);
}

/// Floats stay in f64 until the expression ends or a conversion names a type; integers wrap.
void referenceExpr(const graph::Node& node, Operands in, Results out) {
  Array& y = out[0];
  const text::ExprSteps steps = orThrow(text::parseExpr(node.stringAttr("steps")));
  std::vector<Elem> elems;
  std::vector<Strides> strides;
  for (size_t n = 0; n < node.operands().size(); ++n) {
    elems.push_back(in[n]->elem);
    strides.push_back(broadcastStrides(in[n]->dims, y.dims));
  }
  const text::ExprTypes types =
      orThrow(text::typeExpr(steps, elems, elems.empty() ? Elem::none : elems[0]));
  // Literals are read once. Inference took them already.
  std::vector<std::array<Scalar, 4>> args(steps.size());
  for (size_t s = 0; s < steps.size(); ++s)
    for (size_t a = 0; a < steps[s].args.size(); ++a) {
      if (steps[s].args[a].source != text::ExprArg::Source::literal) continue;
      const Elem elem = types.args[s][a];
      args[s][a] = decode(elem, orThrow(text::parseElement(elem, steps[s].args[a].literal)));
    }
  std::vector<Scalar> values(steps.size());
  int64_t i = 0;
  forEach(y.dims, strides, [&](const int64_t* at) {
    for (size_t s = 0; s < steps.size(); ++s) {
      for (size_t a = 0; a < steps[s].args.size(); ++a) {
        const text::ExprArg& arg = steps[s].args[a];
        if (arg.source == text::ExprArg::Source::acc) args[s][a] = in[0]->at(at[0]);
        if (arg.source == text::ExprArg::Source::view)
          args[s][a] = in[arg.index]->at(at[arg.index]);
        if (arg.source == text::ExprArg::Source::step) args[s][a] = values[arg.index];
      }
      if (steps[s].kind == CDL_KIND_RESCALE) {
        values[s] = rescaleStep(args[s].data(), steps[s].low, steps[s].high);
        continue;
      }
      values[s] = apply(
          {steps[s].kind, steps[s].fn, types.args[s].back(), types.steps[s], steps[s].saturate},
          args[s].data());
    }
    y.set(i++, values.back());
  });
}

} // namespace candela::reference
