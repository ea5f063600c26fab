#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/compiler/import/term.h"

/// Fourier transforms as products with constant matrices: exact to the last digits, in n * m
/// multiplications.
namespace candela::import {
namespace {

/// of one matrix: transforms of 2048 complex numbers
constexpr int64_t kMostCoefficients = int64_t(1) << 24;

/// What one transform makes of `in` numbers of `inParts` (real, or real and imaginary): `out`
/// numbers of `outParts`.
struct Transform {
  int64_t length, in, inParts, out, outParts;
  bool inverse = false;
  bool isHalf = false; ///< in: the first half of a spectrum whose other half mirrors it
};

/// [in * inParts, out * outParts]
Term matrix(Builder& build, const Transform& t, Elem elem) {
  const auto rows = elementCount(Shape{t.in, t.inParts}),
             columns = elementCount(Shape{t.out, t.outParts});
  if (!rows || !columns || *rows > kMostCoefficients ||
      (*rows > 0 && *columns > kMostCoefficients / *rows))
    need(failure(Code::unsupported, "a transform of {} to {} numbers has more than {} coefficients",
                 t.in, t.out, kMostCoefficients));
  std::vector<double> values(static_cast<size_t>(*rows * *columns));
  for (int64_t n = 0; n < t.in; ++n)
    for (int64_t k = 0; k < t.out; ++k) {
      // Reduced while it is whole, so that the angle is exact.
      const double turn = static_cast<double>(n * k % t.length) / static_cast<double>(t.length);
      const double angle = (t.inverse ? 2 : -2) * std::numbers::pi * turn;
      double weight = t.inverse ? 1 / static_cast<double>(t.length) : 1;
      if (t.isHalf && n != 0 && 2 * n != t.length) weight *= 2;
      const double cosine = weight * std::cos(angle), sine = weight * std::sin(angle);
      const double parts[2][2] = {{cosine, sine}, {-sine, cosine}}; // [in][out]
      for (int64_t i = 0; i < t.inParts; ++i)
        for (int64_t o = 0; o < t.outParts; ++o)
          values[(n * t.inParts + i) * *columns + k * t.outParts + o] = parts[i][o];
    }
  return constant(build, values, {*rows, *columns}, elem);
}

std::optional<int64_t> knownInt(NodeContext& context, size_t input, const char* what) {
  const auto given = need(context.knownInts(input, what));
  if (given && given->size() != 1)
    need(badModel("{} has {} elements, expected 1", what, given->size()));
  return given ? std::optional(given->front()) : std::nullopt;
}

int64_t partsOf(const Term& x) {
  if (!isFloat(x.elem()) || x.rank() < 2 || (x.dim(-1) != 1 && x.dim(-1) != 2))
    need(badModel("{} is no signal of real (1) or complex (2) numbers in its last dim", x.text()));
  return x.dim(-1);
}

int64_t inRange(const char* what, int64_t value, int64_t least) {
  if (value < least || value > INT32_MAX)
    need(badModel("{} is {}, expected {} to {}", what, value, least, INT32_MAX));
  return value;
}

Status importDft(NodeContext& context) {
  const Term x = termOf(context, 0);
  const int64_t parts = partsOf(x), rank = x.rank();
  const bool inverse = need(context.flagAttr("inverse", false)),
             onesided = need(context.flagAttr("onesided", false));
  int64_t axis = context.opset < 20 ? attrOf<int64_t>(context, "axis", 1)
                                    : knownInt(context, 2, "axis").value_or(-2);
  if (context.opset < 20 && context.input(2))
    return badModel("input 'axis' needs opset 20, the model has {}", context.opset);
  axis = need(resolveAxis(axis, rank));
  if (axis == rank - 1)
    return badModel("axis {} of {} holds the parts of the numbers", axis, x.text());
  const bool isHalf = inverse && onesided;
  const int64_t length = inRange(
      "dft_length",
      knownInt(context, 1, "dft_length").value_or(isHalf ? 2 * (x.dim(axis) - 1) : x.dim(axis)), 1);
  // What is missing is 0, what is too much is left out.
  const Transform transform{length,         std::min(x.dim(axis), isHalf ? length / 2 + 1 : length),
                            parts,          onesided && !inverse ? length / 2 + 1 : length,
                            isHalf ? 1 : 2, inverse,
                            isHalf};
  std::vector<int64_t> perm, back(static_cast<size_t>(rank));
  for (int64_t i = 0; i + 1 < rank; ++i)
    if (i != axis) perm.push_back(i);
  perm.insert(perm.end(), {axis, rank - 1});
  for (size_t i = 0; i < perm.size(); ++i) back[perm[i]] = static_cast<int64_t>(i);

  const Term numbers = x.slice(axis, 0, transform.in).transpose(perm).cast(weightedElem(x.elem()));
  Shape shape = numbers.shape();
  const int64_t depth = transform.in * parts;
  const auto rows = elementCount(std::span(shape).first(static_cast<size_t>(rank) - 2));
  const Term y = matmul(numbers.reshape({rows.value_or(0), depth}),
                        matrix(context.build, transform, weightedElem(x.elem())));
  shape[rank - 2] = transform.out;
  shape[rank - 1] = transform.outParts;
  return context.set(y.reshape(shape).transpose(back).cast(x.elem()));
}

/// Frames are a view of the signal whose rows overlap; the window is part of the matrix.
Status importStft(NodeContext& context) {
  const Term x = termOf(context, 0);
  const int64_t parts = partsOf(x);
  if (x.rank() != 3) return badModel("signal {} has rank {}, expected 3", x.text(), x.rank());
  const bool onesided = need(context.flagAttr("onesided", true));
  const int64_t hop = inRange("frame_step", *knownInt(context, 1, "frame_step"), 1),
                size = x.dim(1);
  std::optional<Term> window;
  if (context.input(2)) window = termOf(context, 2);
  if (window && (window->rank() != 1 || window->elem() != x.elem()))
    return badModel("window {}, expected a vector of {}", window->text(), elemName(x.elem()));
  const int64_t length =
      inRange("frame_length",
              knownInt(context, 3, "frame_length").value_or(window ? window->dim(0) : size), 1);
  if (window && window->dim(0) != length)
    return badModel("window {} but frames of {}", window->text(), length);
  if (length > size) return badModel("frames of {} but a signal of {}", length, size);
  const int64_t frames = (size - length) / hop + 1;
  const Transform transform{length, length, parts, onesided ? length / 2 + 1 : length, 2};
  Term factors = matrix(context.build, transform, weightedElem(x.elem()));
  if (window) {
    const int64_t columns = factors.dim(1);
    factors = (factors.reshape({length, parts * columns}) *
               window->cast(factors.elem()).reshape({length, 1}))
                  .reshape({length * parts, columns});
  }
  const Term view = make(OpKind::Affine, {x},
                         {{"offset", int64_t(0)},
                          {"dims", Shape{x.dim(0), frames, length * parts}},
                          {"strides", std::vector<int64_t>{size * parts, hop * parts, 1}}});
  const Term y = matmul(view.cast(weightedElem(x.elem())), factors);
  return context.set(y.reshape({x.dim(0), frames, transform.out, 2}).cast(x.elem()));
}

constexpr Operator kTransformOperators[] = {
    {"DFT", 1, 3, 1, importDft},
    {"STFT", 2, 4, 1, importStft},
};

} // namespace

std::span<const Operator> transformOperators() { return kTransformOperators; }

} // namespace candela::import
