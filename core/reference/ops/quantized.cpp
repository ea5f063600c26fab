#include <algorithm>
#include <cmath>

#include "core/reference/kinds.h"

namespace candela::reference {
namespace {

/// body(element, index of its scale and zero point).
template <typename Body> void eachByAxis(const graph::Node& node, const Array& x, Body body) {
  int64_t inner = 1, channels = 1;
  if (node.hasAttr("axis")) {
    const Around around(x.dims, axisOf(node.intAttr("axis"), x.dims));
    inner = around.inner;
    channels = around.count;
  }
  for (int64_t i = 0; i < x.count(); ++i) body(i, i / inner % channels);
}

/// x less its zero point, if any, in a wide type; several zero points go along the first dim of x,
/// or the last.
Array centred(const Array& x, const Array* zero, bool alongFirst) {
  Array by(x.elem, {1});
  if (zero) by = *zero;
  if (alongFirst && by.count() > 1) by.dims.resize(x.dims.size(), 1);
  return withoutZero(x, by);
}

} // namespace

void referenceQuantize(const graph::Node& node, Operands in, Results out) {
  const Elem elem = in[0]->elem == Elem::f64_ ? Elem::f64_ : Elem::f32_;
  const IntegerRange range = integerRange(out[0].elem);
  const double lowest = static_cast<double>(range.lowest),
               highest = static_cast<double>(range.highest);
  eachByAxis(node, *in[0], [&](int64_t i, int64_t c) {
    const double zero = static_cast<double>(in[2]->whole[c]);
    const double quotient = roundReal(elem, in[0]->real[i] / in[1]->real[c]);
    const double value = std::isnan(quotient) ? zero : std::nearbyint(quotient) + zero;
    out[0].whole[i] = static_cast<Whole>(std::fmin(std::fmax(value, lowest), highest));
  });
}

void referenceDequantize(const graph::Node& node, Operands in, Results out) {
  eachByAxis(node, *in[0], [&](int64_t i, int64_t c) {
    out[0].real[i] =
        static_cast<double>(in[0]->whole[i] - (in[2] ? in[2]->whole[c] : 0)) * in[1]->real[c];
  });
}

void referenceMatmulInteger(const graph::Node&, Operands in, Results out) {
  addProducts(centred(*in[0], in[2], false), centred(*in[1], in[3], false), out[0]);
}

/// What lies outside of x counts as its zero point, so as 0.
void referenceConvInteger(const graph::Node& node, Operands in, Results out) {
  const Array x = centred(*in[0], in[3], false), w = centred(*in[1], in[4], true);
  const Array* operands[] = {&x, &w, in[2]};
  referenceConv(node, operands, out);
}

namespace {

/// clamp(rne(value * factor) + zero, range of `elem`), the factor rounded to f32.
Whole scaled(Whole value, double factor, Elem elem) {
  int exponent = 0;
  const double fraction = std::frexp(static_cast<double>(static_cast<float>(factor)), &exponent);
  const auto multiplier = static_cast<Whole>(std::ldexp(fraction, 24));
  const Term term{value, multiplier, std::max(0, exponent - 24)};
  const IntegerRange range = integerRange(elem);
  return rescale({&term, 1}, std::max(0, 24 - exponent), 0, range.lowest, range.highest);
}

/// Operands `segments` [k, 4] of begin, multiplier, shift and weight, and `tables` [k, 513]: a
/// function of `value` from `base` up.
Whole bySegments(Whole value, Whole base, const Array& segments, const Array& tables) {
  for (int64_t s = 0; s < segments.dims[0]; ++s) {
    const Whole* row = &segments.whole[static_cast<size_t>(4 * s)];
    const Term term{value - row[0], row[1], 0};
    Array x(Elem::i16_, {1}), table(Elem::i16_, {513}), y(Elem::i16_, {1});
    x.whole[0] = rescale({&term, 1}, static_cast<int64_t>(row[2]), -32768, -32768, 32767);
    for (size_t i = 0; i < 513; ++i)
      table.whole[i] = tables.whole[static_cast<size_t>(513 * s) + i];
    lookUp(x, table, y);
    base += row[3] * y.whole[0];
  }
  return base;
}

/// The RESCALE that ends a row function: by the node's multiplier, shift and zero to its type.
Whole ended(const graph::Node& node, Whole value, Elem elem) {
  const Term term{value, node.intAttr("multiplier"), 0};
  const IntegerRange range = integerRange(elem);
  return rescale({&term, 1}, node.intAttr("shift"), node.intAttr("zero"), range.lowest,
                 range.highest);
}

} // namespace

void referenceSoftmaxInteger(const graph::Node& node, Operands in, Results out) {
  const Array &x = *in[0], &exponential = *in[1];
  const Around around(x.dims, axisOf(node.intAttr("axis"), x.dims));
  for (int64_t line = 0; line < around.outer * around.inner; ++line) {
    Whole largest = -128, sum = 0;
    for (int64_t k = 0; k < around.count; ++k)
      largest = std::max(largest, x.whole[around.at(line, k)]);
    // Entry 511 stands for the largest, each one before it for a distance of one more.
    const auto exponentialAt = [&](int64_t k) {
      return exponential.whole[static_cast<size_t>(511 + x.whole[around.at(line, k)] - largest)];
    };
    for (int64_t k = 0; k < around.count; ++k) sum += exponentialAt(k);
    const Whole reciprocal = bySegments(sum, node.intAttr("base"), *in[2], *in[3]);
    for (int64_t k = 0; k < around.count; ++k)
      out[0].whole[around.at(line, k)] = ended(node, exponentialAt(k) * reciprocal, out[0].elem);
  }
}

void referenceLayerNormInteger(const graph::Node& node, Operands in, Results out) {
  const Array& x = *in[0];
  const int64_t n = product(x.dims, axisOf(node.intAttr("axis"), x.dims), x.dims.size());
  const double count = static_cast<double>(n);
  const Whole fraction = Whole(1) << node.intAttr("fraction");
  for (int64_t row = 0; row < x.count(); row += n) {
    Whole sum = 0, squares = 0;
    for (int64_t i = row; i < row + n; ++i) sum += x.whole[i];
    const Whole mean = scaled(sum, 1 / count, x.elem), rest = sum - n * mean;
    for (int64_t i = row; i < row + n; ++i) squares += (x.whole[i] - mean) * (x.whole[i] - mean);
    const Whole excess = scaled(rest * rest, static_cast<double>(fraction) / count, Elem::i16_);
    const Whole spread = squares * fraction - excess + node.intAttr("epsilon");
    const Whole reciprocal = bySegments(spread, node.intAttr("base"), *in[3], *in[4]);
    for (int64_t i = 0; i < n; ++i) {
      const Whole centred = scaled(n * (x.whole[row + i] - mean) - rest, 128 / count, Elem::i16_);
      const Term term{centred * reciprocal, 1, 0};
      const Whole normal = rescale({&term, 1}, node.intAttr("normal_shift"), 0, -32768, 32767);
      out[0].whole[row + i] = ended(node, normal * in[1]->whole[i] + in[2]->whole[i], out[0].elem);
    }
  }
}

void referenceRmsNormInteger(const graph::Node& node, Operands in, Results out) {
  const Array& x = *in[0];
  const int64_t n = product(x.dims, axisOf(node.intAttr("axis"), x.dims), x.dims.size());
  const Whole fraction = Whole(1) << node.intAttr("fraction");
  for (int64_t row = 0; row < x.count(); row += n) {
    const auto distance = [&](int64_t i) { return x.whole[row + i] - node.intAttr("x_zero"); };
    Whole squares = 0;
    for (int64_t i = 0; i < n; ++i) squares += distance(i) * distance(i);
    const Whole spread = squares * fraction + node.intAttr("epsilon");
    const Whole reciprocal = bySegments(spread, node.intAttr("base"), *in[2], *in[3]);
    for (int64_t i = 0; i < n; ++i) {
      const Term term{128 * distance(i) * reciprocal, 1, 0};
      const Whole normal = rescale({&term, 1}, node.intAttr("normal_shift"), 0, -32768, 32767);
      out[0].whole[row + i] = ended(node, normal * in[1]->whole[i], out[0].elem);
    }
  }
}

} // namespace candela::reference
