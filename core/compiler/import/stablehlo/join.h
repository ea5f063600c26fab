#pragma once

#include "core/compiler/import/stablehlo/region_meaning.h"
#include "core/compiler/import/stablehlo/step.h"

/// Values that are joined, along a dim or element by element.
namespace candela::import::stablehlo {

/// "maximum", for messages.
std::string_view joinName(Join join);
/// What an operation applies: its attribute `applies`, or its region. Throws where it is none.
Join joinApplied(Step& step, size_t index);

/// One element by one; operands broadcast.
Name joined(Step& step, Join join, Elem elem, const Name& a, const Name& b);
/// Whether joining with it leaves every value as it is.
bool isIdentity(const Value& value, Join join);
/// A value that does, of rank 0.
Name identityOf(Step& step, Join join, Elem elem);

/// Windows of `taps` elements along a dim, as many apart as `dilation` says, each joined.
Part joinWindows(Step& step, Join join, Elem elem, const Part& x, size_t axis, int64_t taps,
                 int64_t dilation);

} // namespace candela::import::stablehlo
