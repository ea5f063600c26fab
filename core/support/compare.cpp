#include "core/support/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/support/float_bits.h"

namespace candela {
namespace {

uint64_t elementBits(const Tensor& tensor, int64_t i) {
  return loadElement(tensor.elem, tensor.bytes.data(), i);
}
__int128 elementAsInteger(const Tensor& tensor, int64_t i) {
  return integerOf(tensor.elem, elementBits(tensor, i));
}

/// The index of element i in each dim.
Shape indexOf(int64_t i, const Shape& dims) {
  Shape index(dims.size());
  for (size_t d = dims.size(); d-- > 0;) {
    index[d] = i % dims[d];
    i /= dims[d];
  }
  return index;
}

} // namespace

double elementAsReal(const Tensor& tensor, int64_t i) {
  if (isFloat(tensor.elem)) return toReal(tensor.elem, elementBits(tensor, i));
  return static_cast<double>(elementAsInteger(tensor, i));
}

std::string elementText(const Tensor& tensor, int64_t i) {
  if (tensor.elem == Elem::bool_) return elementBits(tensor, i) ? "true" : "false";
  if (tensor.elem == Elem::f64_) return fmt::format("{}", elementAsReal(tensor, i));
  if (isFloat(tensor.elem)) return fmt::format("{}", static_cast<float>(elementAsReal(tensor, i)));
  if (tensor.elem == Elem::u64_) return fmt::format("{}", elementBits(tensor, i));
  return fmt::format("{}", static_cast<int64_t>(elementAsInteger(tensor, i)));
}

Comparison compareTensors(const Tensor& got, const Tensor& want, const CompareBound& bound) {
  Comparison result;
  if (got.elem != want.elem || got.dims != want.dims) {
    result.typeProblem = fmt::format("expected {}, got {}", want.typeText(), got.typeText());
    return result;
  }
  result.count = got.count();
  const bool isReal = isFloat(got.elem);
  for (int64_t i = 0; i < result.count; ++i) {
    double difference, size;
    bool within;
    if (isReal) {
      const double g = elementAsReal(got, i), w = elementAsReal(want, i);
      const bool same = g == w || (std::isnan(g) && std::isnan(w));
      size = std::abs(w);
      difference = same ? 0 : std::abs(g - w);
      if (std::isnan(difference)) difference = std::numeric_limits<double>::infinity();
      // An infinite bound would let everything pass.
      within = same || (std::isfinite(w) && difference <= bound.absolute + bound.relative * size);
    } else {
      const __int128 g = elementAsInteger(got, i), w = elementAsInteger(want, i);
      size = std::abs(static_cast<double>(w));
      difference = static_cast<double>(g > w ? g - w : w - g);
      within = g == w || (!bound.exactIntegers && got.elem != Elem::bool_ &&
                          difference <= bound.absolute + bound.relative * size);
    }
    result.maxAbs = std::max(result.maxAbs, difference);
    if (size > 0 && difference > 0)
      result.maxRel = std::max(result.maxRel, std::isinf(size) ? difference : difference / size);
    if (within) continue;
    if (result.mismatches++ == 0) {
      result.first = indexOf(i, got.dims);
      result.firstGot = elementText(got, i);
      result.firstWant = elementText(want, i);
    }
  }
  return result;
}

std::string Comparison::text() const {
  if (!typeProblem.empty()) return typeProblem;
  if (mismatches == 0) return "equal within the bound";
  return fmt::format("{} of {} values differ, first at [{}]: expected {}, got {}; largest "
                     "difference {:.4g} (relative {:.4g})",
                     mismatches, count, fmt::join(first, ","), firstWant, firstGot, maxAbs, maxRel);
}

} // namespace candela
