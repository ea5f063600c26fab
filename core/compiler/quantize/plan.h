#pragma once

#include "core/compiler/quantize/network.h"

namespace candela::quantize {

/// What a node is to quantization.
enum class Role : uint8_t {
  other,      ///< it stays float
  product,    ///< Conv, Gemm, MatMul: integers times integers
  arithmetic, ///< Add, Sub, Mul of two values, means: integers to integers by one rescaling
  activation, ///< Relu, Clip: a limit of what it follows, or a function
  function,   ///< element by element, of one value: a table
  row,        ///< Softmax, LayerNormalization: a function of a row of integers
  movement,   ///< its result has the steps of its operand
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
  /// Values that meet other values of the run in a product: with a zero point of 0, or each run
  /// would have to sum them first. The right ones have a sign, as products want it.
  std::set<std::string> leftFactors, rightFactors;

  /// The value whose steps are its own.
  std::string root(std::string value) const {
    for (auto at = sameAs.find(value); at != sameAs.end(); at = sameAs.find(value))
      value = at->second;
    return value;
  }
};

/// `keepFloat`: nodes that may not become integers, with the reason for each.
/// `integerRows`: whether Softmax and LayerNormalization may become such.
Plan makePlan(const Network& network, bool integerRows,
              const std::map<int, std::string>& keepFloat = {});

} // namespace candela::quantize
