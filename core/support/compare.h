#pragma once

#include "core/support/tensor.h"

namespace candela {

/// |got - want| <= absolute + relative * |want|. Infinities must be equal, NaN equals NaN.
struct CompareBound {
  double relative = 1e-3;
  double absolute = 1e-7;
  bool exactIntegers = true; ///< integers and bool must be equal, whatever the bound
};

/// What compareTensors found. Differences are taken over all elements, inside of the bound or not.
struct Comparison {
  std::string typeProblem; ///< not empty: the types or shapes differ and no element was compared
  int64_t count = 0;       ///< elements compared
  int64_t mismatches = 0;  ///< outside of the bound
  double maxAbs = 0;       ///< infinite where NaN or infinity stands on one side only
  double maxRel = 0;       ///< of |got - want| / |want|, where want is not 0
  Shape first;             ///< index of the first mismatch
  std::string firstGot, firstWant;

  bool passed() const { return typeProblem.empty() && mismatches == 0; }
  /// "expected f32[2], got f32[3]", or "3 of 360 values differ, first at [0,7]: expected 0.5, got
  /// 0.25; largest difference 0.25 (relative 0.5)", or "equal within the bound".
  std::string text() const;
};

/// Element types and shapes must be the same; then every element is compared.
Comparison compareTensors(const Tensor& got, const Tensor& want, const CompareBound& bound = {});

/// Element i as a real number: exact up to 2^53 for integers.
double elementAsReal(const Tensor& tensor, int64_t i);
/// Element i as a person writes it.
std::string elementText(const Tensor& tensor, int64_t i);

} // namespace candela
