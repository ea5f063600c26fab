#include "conformance/tiers/scaled_fills.h"

#include <cmath>

#include "core/support/float_bits.h"
#include "core/support/out_of_memory.h"
#include "core/support/text/scan.h"

namespace candela::conformance::tiers {

ProductText::ProductText(std::string_view text) {
  const size_t b = text.find('b');
  const Shape dims = shapeOf(text.substr(0, b));
  rows = dims[0];
  depth = dims[1];
  columns = dims[2];
  block = text::parseNumber<int64_t>(text.substr(b + 1)).value_or(1);
}

TrialBuilder::Fill blockScales(Elem elem) {
  return [elem](int64_t count, random::Random& random) {
    Tensor tensor = orThrow(Tensor::zeros(elem, {count}));
    for (int64_t i = 0; i < count; ++i) {
      const double size = std::ldexp(1 + static_cast<double>(random.below(8)) / 8,
                                     static_cast<int>(random.between(-4, 0)));
      const bool isNegative = elem != Elem::f8e8m0_ && random.oneIn(4);
      storeElement(elem, tensor.bytes.mutableData(), i, fromReal(elem, isNegative ? -size : size));
    }
    return tensor;
  };
}

TrialBuilder::Fill blockZeros(Elem elem) {
  return [elem](int64_t count, random::Random& random) {
    Tensor tensor = orThrow(Tensor::zeros(elem, {count}));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t number = elem == Elem::i8_ ? random.between(-8, 7) : random.below(16);
      const double quarter = static_cast<double>(number) + 0.25;
      storeElement(elem, tensor.bytes.mutableData(), i,
                   isFloat(elem) ? fromReal(elem, quarter)
                                 : static_cast<uint64_t>(number) & elemMask(elem));
    }
    return tensor;
  };
}

} // namespace candela::conformance::tiers
