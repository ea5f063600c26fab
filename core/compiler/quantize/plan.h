#pragma once

#include <cmath>

#include "core/compiler/quantize/network.h"

namespace candela::quantize {

/// What a node is to quantization.
enum class Role : uint8_t {
  other,      ///< it stays float
  product,    ///< Conv, Gemm, MatMul: integers times integers
  arithmetic, ///< Add, Sub, Mul of two values, means: integers to integers by one rescaling
  activation, ///< Relu, Clip: a limit of what it follows, or a function
  function,   ///< element by element, of one value: a table
  row,        ///< Softmax, LayerNormalization, RMSNormalization: a function of a row of integers
  movement,   ///< its result has the steps of its operand
  join,       ///< values beside or among each other, each in the steps of the result first
};

/// Scores and the mask that is added to them, of which a softmax alone reads the sum. What lies far
/// enough below all scores of its row counts as nothing there, however far that is.
struct MaskedScores {
  std::string scores;
  std::string mask;  ///< of the run, or a constant
  int64_t count = 1; ///< of a row

  /// So far below the largest of its row a value adds less than half a step of bytes to the sum,
  /// and all others like it together do not either.
  double depth() const { return std::log(512.0 * static_cast<double>(count)); }
};

/// What a plan is to reach.
struct PlanOptions {
  /// Whether everything is to become integers that can, as for a device without floats: functions
  /// of rows, sums and products with constants, and what no product stands before.
  bool integerRows = false;
  /// Inputs, and the outputs that are their next values: both have the same steps, around 0.
  std::map<std::string, std::string> states;
};

/// Which nodes become integers, and which values get steps.
struct Plan {
  std::vector<Role> roles;      ///< by node
  std::vector<bool> quantized;  ///< by node
  std::vector<std::string> why; ///< by node that stays float: the reason
  std::set<std::string> values; ///< that are rounded to steps
  /// Whose steps are those of another value, as movement leaves them.
  std::map<std::string, std::string> sameAs;
  /// Functions and what they are of: both have one element type.
  std::map<std::string, std::string> functionOf;
  /// By node of arithmetic: the operand that is a constant of several values, with steps of its
  /// own.
  std::map<int, size_t> constantOperand;
  std::map<std::string, MaskedScores> masked; ///< by the sum
  /// Values that meet other values of the run in a product: with a zero point of 0, or each run
  /// would have to sum them first. The right ones have a sign, as products want it.
  std::set<std::string> leftFactors, rightFactors;

  std::map<std::string, std::string> states; ///< PlanOptions'

  /// The value whose steps are its own.
  std::string root(std::string value) const {
    for (auto at = sameAs.find(value); at != sameAs.end(); at = sameAs.find(value))
      value = at->second;
    return value;
  }
};

/// `keepFloat`: nodes that may not become integers, with the reason for each.
Plan makePlan(const Network& network, const PlanOptions& options,
              const std::map<int, std::string>& keepFloat = {});

} // namespace candela::quantize
