#pragma once

#include <span>

#include "core/support/text/lexer.h"

/// Elementwise expressions as text: `max(add(acc, v1), 0.0)`. Operands are v0, v1, ..., the
/// accumulator `acc`, and literals. Functions are those of UNARY, BINARY, COMPARE and SELECT,
/// `convert_<elem>[_rne|_floor][_saturate]`, and `rescale_<elem>(a, multiplier, shift, zero[,
/// lowest, highest])`. A value that is used more than once is named first: `t0 = exp(v0); div(t0,
/// add(t0, 1.0))`.
namespace candela::text {

struct ExprArg {
  enum class Source : uint8_t {
    acc = CDL_FROM_ACC,
    view = CDL_FROM_VIEW,
    literal = CDL_FROM_CONST,
    step = CDL_FROM_STEP
  };
  Source source = Source::view;
  uint16_t index = 0;  ///< of the view, or of an earlier step
  std::string literal; ///< its bits depend on the element type that typeExpr finds
  friend bool operator==(const ExprArg&, const ExprArg&) = default;
};

struct ExprStep {
  uint16_t kind = 0, fn = 0; ///< CDL_KIND_*, and the kind's function
  Elem to = Elem::none;      ///< of a conversion or a RESCALE
  bool saturate = false;     ///< of a conversion
  std::vector<ExprArg> args;
  int32_t low = 0, high = 0; ///< limits of a RESCALE
  friend bool operator==(const ExprStep&, const ExprStep&) = default;
};

/// 1 to 32 steps in order of computation; the last one is the value.
using ExprSteps = std::vector<ExprStep>;

/// Failure: bad_model with what is wrong and at which character.
Result<ExprSteps> parseExpr(std::string_view text);
/// The same inside of a longer text: stops behind the last step. Throws Malformed.
ExprSteps parseExpr(TokenStream& in);
/// Reads back to equal steps.
std::string exprText(std::span<const ExprStep> steps);
/// "add", "convert_i8_rne_saturate".
std::string exprFnName(const ExprStep& step);

/// The types of results that a RESCALE may have as a step: integers whose limits i32 holds.
bool isRescaleStep(Elem to);
/// Whether a function of UNARY or BINARY has a meaning for operands of the type; of other kinds:
/// true.
bool hasMeaning(uint16_t kind, uint16_t fn, Elem elem);

/// Element types of an expression.
struct ExprTypes {
  std::vector<Elem> steps; ///< the result of each step
  /// of each step's operands; literals take the type of their neighbours
  std::vector<std::vector<Elem>> args;
};
/// acc: Elem::none where there is none. Failure: bad_model when a view is missing, operands differ,
/// a literal has no neighbour or does not fit, or a function has no meaning for the type.
Result<ExprTypes> typeExpr(std::span<const ExprStep> steps, std::span<const Elem> views,
                           Elem acc = Elem::none);

} // namespace candela::text
