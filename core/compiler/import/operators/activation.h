#pragma once

#include "core/compiler/import/term.h"

/// Activations that several operators have.
namespace candela::import {

/// x above 0, else alpha * (exp(x / width) - 1), the whole of it times gamma.
inline Term eluOf(const Term& x, double alpha, double width = 1, double gamma = 1) {
  const Term below = expm1(width == 1 ? x : x / width);
  return select(less(x, 0), alpha * gamma == 1 ? below : below * (alpha * gamma),
                gamma == 1 ? x : x * gamma);
}

/// log(1 + exp(x)), which does not overflow.
inline Term softplusOf(const Term& x) { return max(x, 0) + log1p(exp(-abs(x))); }

inline Term softsignOf(const Term& x) { return x / (abs(x) + 1); }
inline Term leakyReluOf(const Term& x, double alpha) { return select(less(x, 0), x * alpha, x); }
inline Term clipOf(const Term& x, double lo, double hi) {
  return make(OpKind::Clip, {x, x.number(lo), x.number(hi)});
}
inline Term hardSigmoidOf(const Term& x, double alpha, double beta) {
  return clipOf(x * alpha + beta, 0, 1);
}

} // namespace candela::import
