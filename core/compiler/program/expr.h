#pragma once

#include "core/compiler/program/program.h"
#include "core/support/text/expr.h"

/// An instruction's expression as it is written and as it is held.
namespace candela::program {

/// v0, v1, ... are `views` from `first` on; acc: none where there is no accumulator. Failure:
/// bad_model as typeExpr(), or two literals in one step.
Result<Expr> resolveExpr(const text::ExprSteps& steps, const std::vector<View>& views, Elem acc,
                         size_t first = 0);
/// The inverse, of an expression that was verified.
text::ExprSteps exprSteps(const Expr& expr);

} // namespace candela::program
