#pragma once

#include "conformance/trial_builder.h"

/// What the cases of products with scales share: their shapes, and contents beside the factors.
namespace candela::conformance::tiers {

/// "3x40x5b16": rows, depth, columns, and the elements of a block.
struct ProductText {
  explicit ProductText(std::string_view text);
  int64_t blocks() const { return (depth + block - 1) / block; }

  int64_t rows = 1;
  int64_t depth = 1;
  int64_t columns = 1;
  int64_t block = 1;
};

/// Magnitudes of 1/16 to 2 in eighths, of either sign where the type has one.
TrialBuilder::Fill blockScales(Elem elem);

/// Numbers within those of 4-bit weights; of floats a quarter above them.
TrialBuilder::Fill blockZeros(Elem elem);

} // namespace candela::conformance::tiers
