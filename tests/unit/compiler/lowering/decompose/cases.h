#pragma once

#include <string>
#include <vector>

#include "core/compiler/capabilities/target.h"
#include "core/compiler/graph/graph.h"

/// Every op of the Graph in several shapes and types: what lowering and emitting must keep the
/// meaning of.
namespace candela::cases {

/// One operand: a graph input with these elements, or a constant.
struct Operand {
  Tensor tensor;
  bool constant = false;
  bool absent = false;
};

struct Case {
  std::string name;
  graph::OpKind kind;
  std::vector<Operand> operands;
  graph::Attrs attrs;
  int results = 1;
  /// Bound of |got - expected| in units of the element type's epsilon times max(|expected|, floor).
  double ulps = 0, floor = 1;
  bool hostOnly = false; ///< outside of what the profiles can say (i64 inside of the op)
};

std::vector<Case> all();
graph::Graph graphOf(const Case& test);
std::vector<Tensor> inputsOf(const Case& test);
/// Empty when every element is within the case's bound; NaN equals NaN. Integers: exact.
std::string compare(const Case& test, const Tensor& expected, const Tensor& got);

/// Required rows of every profile, native.
capabilities::Target accelerator();
/// core/runtime/host_executor's rows.
capabilities::Target host();

} // namespace candela::cases
