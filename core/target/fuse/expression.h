#pragma once

#include <optional>
#include <set>

#include "core/graph/graph.h"
#include "core/support/text/expr.h"

namespace candela::target {

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

/// Exact and not quantized, all of them: an expression walks values as they lie.
bool isWalkable(const std::vector<graph::Value*>& values);

/// The function that a node is as a step, without operands; nullopt when no step does the same.
std::optional<text::ExprStep> stepOf(const graph::Node& node);

/// The shape of what broadcasts as `shape` to `from`, to broadcast alike to `to`, which has the same elements in the
/// same order; nullopt where no shape does.
std::optional<Shape> shapeOver(const Shape& shape, const Shape& from, const Shape& to);

/// `root` and what it reads of `inside`: steps, and reshapes where there is an accumulator. nullopt beyond the limits
/// on steps and operands.
std::optional<Expression> expressionOf(const graph::Node& root, const std::set<const graph::Node*>& inside,
                                       graph::Value* accumulator);

} // namespace candela::target
