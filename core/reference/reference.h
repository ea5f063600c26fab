#pragma once

#include <span>

#include "core/compiler/graph/graph.h"
#include "core/reference/scalar.h"

/// The oracle: every op as its definition says, in f64 and 128-bit integers, readable and slow.
/// Shares no arithmetic with what it judges (numerics.h, core/runtime/host_executor).
namespace candela::reference {

/// A tensor while the oracle computes: floats widened to f64, integers and bool to 128 bits.
/// Rounded to `type.elem` once, when an op's result leaves the op.
struct Array {
  Elem elem = Elem::none;
  Shape dims;
  std::vector<double> real;    ///< float types
  std::vector<__int128> whole; ///< integer types and bool

  Array() = default;
  Array(Elem elem, Shape dims);
  int64_t count() const { return static_cast<int64_t>(isFloat(elem) ? real.size() : whole.size()); }
  Scalar at(int64_t i) const;
  void set(int64_t i, const Scalar& value);
  void fill(const Scalar& value);
};

/// Failure: invalid_argument for an impossible tensor, out_of_memory for one of more than 2^30
/// elements.
Result<Array> fromTensor(const Tensor& tensor);
/// Rounds floats to nearest even; integers wrap.
Result<Tensor> toTensor(const Array& array);

/// out_of_memory for shapes of more than 2^30 elements, which the oracle does not hold.
Status checkSize(std::span<const int64_t> dims);

/// One node on these operands, as constant folding uses it; an absent one is a Tensor without a
/// type. Results have the types that inference gave.
Result<std::vector<Tensor>> evaluate(const graph::Node& node, std::span<const Tensor> operands);
/// A node whose operands are constants or absent: what constant folding uses.
Result<std::vector<Tensor>> evaluate(const graph::Node& node);

/// The same of a loop; in ops/loop.cpp.
Result<std::vector<Tensor>> evaluateLoop(const graph::Node& node, std::span<const Tensor> operands);

/// The same of what a plugin claims: its body; in ops/custom.cpp. Failure: unsupported where it has
/// none.
Result<std::vector<Tensor>> evaluateCustom(const graph::Node& node,
                                           std::span<const Tensor> operands);

/// A whole graph.
Result<std::vector<Tensor>> run(const graph::Graph& graph, std::span<const Tensor> inputs);

using Operands = std::span<const Array* const>;
using Results = std::span<Array>;

// One per record of spec/ops/ that is not one instruction, in reference/ops/<family>.cpp. Operands
// follow the record; absent ones are null; results are preallocated with the inferred element types
// and dims. A missing one is a link error.
#define CANDELA_OP(Kind, name)                                                                     \
  void reference##Kind(const graph::Node& node, Operands in, Results out);
CANDELA_FORMULAS(CANDELA_OP)
#undef CANDELA_OP
/// Whichever of them the node has, or its one instruction; results are not rounded to their types.
void applyFormula(const graph::Node& node, Operands in, Results out);

} // namespace candela::reference
