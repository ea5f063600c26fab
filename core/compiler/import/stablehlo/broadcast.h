#pragma once

#include <functional>

#include "core/compiler/import/stablehlo/step.h"

namespace candela::import::stablehlo {

/// Operands of an operation element by element, as they are kept.
struct Operands {
  std::vector<Name> names;
  Shape kept; ///< of what an operator that broadcasts makes of them
};

/// All of the operands, which have the result's dims, or rank 0 where `scalarsToo`.
Operands elementwiseOperands(Step& step, bool scalarsToo = false);
/// The one operand of an operation with one, of the result's dims and of floats.
Operands floatOperand(Step& step);

/// Of the integers of each operand what the result's element is. Few known integers become known
/// ones, as indices are made of them. False: they are no such ones, and nothing has been set.
bool foldIntegers(Step& step, const std::function<int64_t(const Ints&)>& formula);

/// A constant of rank 0 by its bits.
Name bitsConstant(Step& step, uint64_t bits, Elem elem);

} // namespace candela::import::stablehlo
