#pragma once

#include "conformance/random/random_ops.h"

/// Nodes that are differentiated: of one float type, where their op is smooth and defined.
namespace candela::conformance::random {

/// A node of the op by itself, with data whose results are finite. Every float operand is of `elem`
/// and an input. Nullopt where these numbers draw none.
std::optional<Recipe> smoothNode(const graph::OpInfo& info, Elem elem, Random& random);

/// The same node on the same numbers, computed in f64 where it was in `elem`.
Recipe inDoubles(const Recipe& recipe, Elem elem);

/// Whether the op has rules that take only some of its forms (tests/ir/differentiate/refusals.cdl).
bool refusesSomeForms(graph::OpKind kind);

} // namespace candela::conformance::random
