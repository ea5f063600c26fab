#include <limits>

#include "core/reference/index.h"
#include "core/reference/scalar.h"
#include "core/support/float_bits.h"
#include "core/support/text/expr.h"
#include "core/support/text/literal.h"

namespace candela::reference {
namespace {

using Operands = std::span<const Array* const>;
using Results = std::span<Array>;

/// One element of any type.
struct Scalar {
  double real = 0;
  Whole whole = 0;
};

Scalar elementAt(const Array& array, int64_t i) {
  if (isFloat(array.elem)) return {array.real[i], 0};
  return {0, array.whole[i]};
}

Scalar fromBits(Elem elem, uint64_t bits) {
  if (isFloat(elem)) return {toReal(elem, bits), 0};
  return {0, wrap(elem, static_cast<Whole>(bits))};
}

/// The indices of take and put are already counted from 0.
bool isInside(Whole index, int64_t extent) { return index >= 0 && index < extent; }

uint16_t binaryOf(const std::string& fn) {
  if (fn == "add" || fn == "sum") return CDL_BINARY_ADD;
  if (fn == "min") return CDL_BINARY_MIN;
  if (fn == "max") return CDL_BINARY_MAX;
  return CDL_BINARY_MUL;
}

} // namespace

Status referenceAffine(const graph::Node& node, Operands in, Results out) {
  onElements(*in[0], out[0], [&](const auto& from, auto& to) {
    int64_t i = 0;
    const int64_t offset = node.intAttr("offset");
    Strides strides = node.intsAttr("strides");
    for (size_t d = 0; d < strides.size(); ++d)
      if (out[0].dims[d] == 1) strides[d] = 0; // never walked: may be any number
    forEach(out[0].dims, std::array{strides}, [&](int64_t o) { to[i++] = from[offset + o]; });
  });
  return Status::ok();
}

Status referencePlace(const graph::Node& node, Operands in, Results out) {
  Array& y = out[0];
  const size_t rank = y.dims.size();
  const Scalar fill = fromBits(y.elem, static_cast<uint64_t>(node.intAttr("value")));
  std::fill(y.real.begin(), y.real.end(), fill.real);
  std::fill(y.whole.begin(), y.whole.end(), fill.whole);
  const auto offsets = node.intsAttr("offsets");
  const auto steps = node.hasAttr("steps") ? node.intsAttr("steps") : Shape(rank, 1);
  const Strides dense = denseStrides(y.dims);
  for (size_t n = 0; n < node.operands().size(); ++n) {
    const Array& x = *in[n];
    if (x.count() == 0) continue;
    int64_t start = 0;
    Strides strides(rank);
    for (size_t d = 0; d < rank; ++d) {
      start += offsets[n * rank + d] * dense[d];
      strides[d] = x.dims[d] == 1 ? 0 : dense[d] * steps[d];
    }
    onElements(x, y, [&](const auto& from, auto& to) {
      int64_t i = 0;
      forEach(x.dims, std::array{strides}, [&](int64_t o) { to[start + o] = from[i++]; });
    });
  }
  return Status::ok();
}

Status referenceTake(const graph::Node& node, Operands in, Results out) {
  const Array &x = *in[0], &index = *in[1];
  const bool clamp = node.stringAttr("mode") == "clamp";
  const int64_t extent = x.dims[1], inner = x.dims[2];
  onElements(x, out[0], [&](const auto& from, auto& to) {
    int64_t i = 0;
    for (int64_t o = 0; o < x.dims[0]; ++o)
      for (const Whole k : index.whole) {
        const auto place = to.begin() + i++ * inner;
        if (!clamp && !isInside(k, extent)) continue; // stays 0
        const int64_t row = static_cast<int64_t>(std::clamp<Whole>(k, 0, extent - 1));
        std::copy_n(from.begin() + (o * extent + row) * inner, inner, place);
      }
  });
  return Status::ok();
}

Status referencePut(const graph::Node& node, Operands in, Results out) {
  const Array &x = *in[0], &index = *in[1], &updates = *in[2];
  Array& y = out[0];
  y.real = x.real;
  y.whole = x.whole;
  const std::string fn = node.stringAttr("fn");
  const int64_t extent = x.dims[1], inner = x.dims[2];
  int64_t u = 0;
  for (int64_t o = 0; o < x.dims[0]; ++o)
    for (const Whole k : index.whole)
      for (int64_t i = 0; i < inner; ++i, ++u) {
        if (!isInside(k, extent)) continue;
        const int64_t at = (o * extent + static_cast<int64_t>(k)) * inner + i;
        if (isFloat(y.elem)) {
          y.real[at] = fn == "set" ? updates.real[u] : binary(binaryOf(fn), y.real[at], updates.real[u]);
        } else {
          y.whole[at] = fn == "set" ? updates.whole[u] : binary(binaryOf(fn), y.elem, y.whole[at], updates.whole[u]);
        }
      }
  return Status::ok();
}

/// Of nothing: sum 0, prod 1, max the lowest and min the highest value.
Status referenceReduce(const graph::Node& node, Operands in, Results out) {
  const Array& x = *in[0];
  Array& y = out[0];
  const std::string name = node.stringAttr("fn");
  const uint16_t fn = binaryOf(name);
  const bool isMax = name == "max", isMin = name == "min";
  const double infinity = std::numeric_limits<double>::infinity();
  const double realStart = isMax ? -infinity : isMin ? infinity : name == "prod" ? 1 : 0;
  const IntegerRange range = isFloat(x.elem) ? IntegerRange{0, 0} : integerRange(x.elem);
  const Whole wholeStart = isMax ? range.lowest : isMin ? range.highest : name == "prod" ? 1 : 0;
  std::fill(y.real.begin(), y.real.end(), realStart);
  std::fill(y.whole.begin(), y.whole.end(), wholeStart);
  for (int64_t o = 0; o < x.dims[0]; ++o)
    for (int64_t r = 0; r < x.dims[1]; ++r)
      for (int64_t i = 0; i < x.dims[2]; ++i) {
        const int64_t from = (o * x.dims[1] + r) * x.dims[2] + i, to = o * x.dims[2] + i;
        if (isFloat(y.elem))
          y.real[to] = binary(fn, y.real[to], x.real[from]);
        else
          y.whole[to] = binary(fn, y.elem, y.whole[to], x.whole[from]);
      }
  return Status::ok();
}

/// y[b,m,n] = sum over k of (a[b,m,k] - a_zero) * (b[b,k,n] - b_zero[n]).
Status referenceBatchMatmul(const graph::Node&, Operands in, Results out) {
  const Array &a = *in[0], &b = *in[1], *aZero = in[2], *bZero = in[3];
  Array& y = out[0];
  const int64_t m = a.dims[1], k = a.dims[2], n = b.dims[2];
  const auto multiply = [&](const auto& left, const auto& right, auto& result, const auto* leftZero,
                            const auto* rightZero) {
    for (int64_t batch = 0; batch < y.dims[0]; ++batch) {
      const auto* rows = left.data() + (a.dims[0] == 1 ? 0 : batch) * m * k;
      const auto* columns = right.data() + (b.dims[0] == 1 ? 0 : batch) * k * n;
      for (int64_t i = 0; i < m; ++i)
        for (int64_t p = 0; p < k; ++p) {
          const auto factor = rows[i * k + p] - (leftZero ? (*leftZero)[0] : 0);
          auto* line = result.data() + (batch * m + i) * n;
          if (!rightZero) {
            for (int64_t j = 0; j < n; ++j) addProduct(line[j], factor, columns[p * n + j]);
          } else {
            for (int64_t j = 0; j < n; ++j)
              addProduct(line[j], factor, columns[p * n + j] - (*rightZero)[rightZero->size() == 1 ? 0 : j]);
          }
        }
    }
  };
  if (isFloat(a.elem)) {
    multiply(a.real, b.real, y.real, aZero ? &aZero->real : nullptr, bZero ? &bZero->real : nullptr);
  } else {
    multiply(a.whole, b.whole, y.whole, aZero ? &aZero->whole : nullptr, bZero ? &bZero->whole : nullptr);
  }
  return Status::ok();
}

Status referenceRound(const graph::Node& node, Operands in, Results out) {
  const std::string mode = node.stringAttr("mode");
  const uint16_t fn = mode == "trunc" ? CDL_CONVERT_TRUNC : mode == "rne" ? CDL_CONVERT_RNE : CDL_CONVERT_FLOOR;
  const bool saturate = node.intAttr("saturate");
  for (int64_t i = 0; i < out[0].count(); ++i) out[0].whole[i] = realToWhole(out[0].elem, in[0]->real[i], fn, saturate);
  return Status::ok();
}

namespace {

/// value * 2^by, or what is far outside of every clamp where that leaves 124 bits.
Whole shiftLeft(Whole value, int64_t by) {
  const Whole limit = Whole{1} << (123 - by);
  return (value > limit ? limit : value < -limit ? -limit : value) << by;
}

} // namespace

/// clamp(rne((a * multiplier * 2^left_shift + b * b_multiplier * 2^b_left_shift) / 2^shift) + zero), exact up to its
/// one rounding. A negative shift counts as 0.
Status referenceRescale(const graph::Node& node, Operands in, Results out) {
  Array& y = out[0];
  const IntegerRange range = integerRange(y.elem);
  const Whole lo = node.hasAttr("clamp_min") ? std::max<Whole>(node.intAttr("clamp_min"), range.lowest) : range.lowest;
  const Whole hi =
      node.hasAttr("clamp_max") ? std::min<Whole>(node.intAttr("clamp_max"), range.highest) : range.highest;
  const int64_t left = node.intAttr("left_shift"), leftB = node.intAttr("b_left_shift");
  std::array<Strides, 6> strides;
  for (size_t n = 0; n < 6; ++n) strides[n] = in[n] ? broadcastStrides(in[n]->dims, y.dims) : Strides(y.dims.size(), 0);
  int64_t i = 0;
  forEach(y.dims, strides, [&](int64_t a, int64_t m, int64_t s, int64_t z, int64_t b, int64_t n) {
    Whole value = shiftLeft(in[0]->whole[a] * in[1]->whole[m], left);
    if (in[4]) value += shiftLeft(in[4]->whole[b] * in[5]->whole[n], leftB);
    value = shiftRightEven(value, std::max<int64_t>(static_cast<int64_t>(in[2]->whole[s]), 0)) + in[3]->whole[z];
    y.whole[i++] = value < lo ? lo : value > hi ? hi : value;
  });
  return Status::ok();
}

/// 8 bits: the entry at x - lowest. i16: between the entries 128 apart around x, to nearest, halves
/// up.
Status referenceTable(const graph::Node&, Operands in, Results out) {
  const Array &x = *in[0], &table = *in[1];
  const Whole lowest = integerRange(x.elem).lowest;
  for (int64_t i = 0; i < x.count(); ++i) {
    const int64_t place = static_cast<int64_t>(x.whole[i] - lowest);
    if (x.elem != Elem::i16_) {
      out[0].whole[i] = table.whole[place];
      continue;
    }
    const Whole base = table.whole[place / 128], next = table.whole[place / 128 + 1];
    out[0].whole[i] = base + (((next - base) * (place % 128) + 64) >> 7);
  }
  return Status::ok();
}

namespace {

/// One step on one element. Floats stay in f64 until the expression ends or a conversion names a
/// type; integers wrap.
Scalar apply(const text::ExprStep& step, Elem argElem, const Scalar* args) {
  const bool real = isFloat(argElem);
  switch (step.kind) {
  case CDL_KIND_UNARY:
    if (real) return {unary(step.fn, args[0].real), 0};
    return {0, wrap(argElem, unary(step.fn, args[0].whole))};
  case CDL_KIND_BINARY:
    if (real) return {binary(step.fn, args[0].real, args[1].real), 0};
    return {0, wrap(argElem, binary(step.fn, argElem, args[0].whole, args[1].whole))};
  case CDL_KIND_COMPARE:
    return {0, real ? compare(step.fn, args[0].real, args[1].real) : compare(step.fn, args[0].whole, args[1].whole)};
  case CDL_KIND_SELECT: return args[0].whole ? args[1] : args[2];
  default: break;
  }
  if (isFloat(step.to))
    return {real ? realToReal(step.to, args[0].real, step.saturate) : wholeToReal(step.to, args[0].whole), 0};
  return {0, real ? realToWhole(step.to, args[0].real, step.fn, step.saturate)
                  : wholeToWhole(step.to, args[0].whole, step.saturate)};
}

} // namespace

Status referenceExpr(const graph::Node& node, Operands in, Results out) {
  Array& y = out[0];
  CDL_ASSIGN(const text::ExprSteps steps, text::parseExpr(node.stringAttr("steps")));
  std::vector<Elem> elems;
  std::vector<Strides> strides;
  const size_t count = node.operands().size();
  for (size_t n = 0; n < count; ++n) {
    elems.push_back(in[n]->elem);
    strides.push_back(broadcastStrides(in[n]->dims, y.dims));
  }
  CDL_ASSIGN(const text::ExprTypes types, text::typeExpr(steps, elems));
  // Literals are read once.
  std::vector<std::array<Scalar, 3>> args(steps.size());
  for (size_t s = 0; s < steps.size(); ++s)
    for (size_t a = 0; a < steps[s].args.size(); ++a) {
      if (steps[s].args[a].source != text::ExprArg::Source::literal) continue;
      CDL_ASSIGN(const uint64_t bits, text::parseElement(types.args[s][a], steps[s].args[a].literal));
      args[s][a] = fromBits(types.args[s][a], bits);
    }
  const Strides dense = denseStrides(y.dims);
  std::vector<Scalar> values(steps.size());
  for (int64_t i = 0; i < y.count(); ++i) {
    const auto load = [&](size_t n) {
      int64_t offset = 0;
      for (size_t d = 0; d < y.dims.size(); ++d) offset += i / dense[d] % y.dims[d] * strides[n][d];
      return elementAt(*in[n], offset);
    };
    for (size_t s = 0; s < steps.size(); ++s) {
      for (size_t a = 0; a < steps[s].args.size(); ++a) {
        const text::ExprArg& arg = steps[s].args[a];
        if (arg.source == text::ExprArg::Source::view) args[s][a] = load(arg.index);
        if (arg.source == text::ExprArg::Source::step) args[s][a] = values[arg.index];
      }
      values[s] = apply(steps[s], types.args[s].back(), args[s].data());
    }
    if (isFloat(y.elem))
      y.real[i] = values.back().real;
    else
      y.whole[i] = values.back().whole;
  }
  return Status::ok();
}

} // namespace candela::reference
