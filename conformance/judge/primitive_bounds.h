#pragma once

#include <map>

#include "conformance/judge/bounds.h"
#include "conformance/judge/statistics.h"
#include "core/compiler/program/program.h"

namespace candela::conformance::judge {

/// What is right for a Program: for each OUTPUT, INOUT and STATE buffer, in order.
struct Expectation {
  std::vector<Tensor> outputs;     ///< of the oracle
  std::vector<Interval> intervals; ///< of each; what is bits rather than numbers lies in `bits`
  /// True where the buffer must have the oracle's very bytes: what is moved is not rounded, nor is
  /// the sign of a zero or the payload of a NaN lost.
  std::vector<bool> bits;
  /// The same of single elements: of each buffer none, or a flag for each element.
  std::vector<std::vector<bool>> exact = {};
  /// Of each, elements that hold the bits of one of these, whatever their intervals say. Empty: of
  /// none.
  std::vector<std::map<int64_t, std::vector<uint64_t>>> anyOf;
  /// of each, what all errors together show. Empty: not looked at
  std::vector<RoundingModel> roundings;
};

/// Of one primitive on these inputs: the oracle's answer, and around it what the row's units in the
/// last place and, for sums, the running error of any order of summation allow
/// (spec/primitives.toml, "ulp"). A Program of several instructions is refused (unsupported), and
/// so is what is no primitive: its bound comes from its decomposition, but for exact SCALED_MATMUL
/// of floats, which profiles require.
Result<Expectation> primitiveBounds(const program::Program& program,
                                    std::span<const Tensor> inputs);

} // namespace candela::conformance::judge
