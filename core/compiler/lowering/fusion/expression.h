#pragma once

#include <optional>
#include <set>

#include "core/compiler/lowering/decompose/describe.h"

namespace candela::lowering::fusion {

/// What some nodes compute, element by element, as one expression.
struct Expression {
  /// A value, and the shape of the same elements that broadcasts to the expression's.
  struct Operand {
    graph::Value* value = nullptr;
    Shape shape;
    friend bool operator==(const Operand&, const Operand&) = default;
  };
  text::ExprSteps steps;
  std::vector<Operand> operands; ///< the accumulator first, where there is one
};

/// `root` and what it reads of `inside`: steps, and reshapes where the elements are walked `over`
/// another shape, that of the accumulator where there is one. nullopt beyond the limits on steps
/// and operands.
std::optional<Expression> expressionOf(const graph::Node& root,
                                       const std::set<const graph::Node*>& inside,
                                       graph::Value* accumulator,
                                       const std::optional<Shape>& over = {});

} // namespace candela::lowering::fusion
