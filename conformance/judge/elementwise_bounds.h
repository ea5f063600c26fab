#pragma once

#include "conformance/judge/primitive_bounds.h"

/// What is right for COPY, FILL, CONVERT, UNARY, BINARY, COMPARE and SELECT.
namespace candela::conformance::judge {

bool isElementwiseKind(uint16_t kind);

/// Of one instruction of these kinds, inside of `for` or not, with results that may lie in place of
/// an operand. What is moved, integers and bools are bits; floats are within their rule
/// (element_rule.h), and a zero that is rounded to has its sign, but of min and max. `deviceFlags`:
/// of a type that CDL_DEVICE_FTZ_* names, a denormal operand or result may also be a zero.
Result<Expectation> elementwiseBounds(const program::Program& program,
                                      std::span<const Tensor> inputs, uint32_t deviceFlags = 0);

} // namespace candela::conformance::judge
