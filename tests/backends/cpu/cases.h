#pragma once

#include <functional>

#include "core/compiler/program/program.h"
#include "tests/fuzz/random_program.h"

/// Random instructions of one capability row, with data that finds mistakes and the bound that
/// their results must keep.
namespace candela::test {

/// How far a result may lie from the oracle's. Neither: the same bits, NaN like NaN.
struct Bound {
  bool anyZero = false; ///< 0 may have either sign
  int ulps = 0;         ///< units in the last place of an f32
  /// Of one element: the oracle's value, and what the same instruction gives on the magnitudes of
  /// all operands.
  std::function<double(double value, double magnitude)> distance;
};

/// One instruction of a Program; its result is a buffer of its own.
struct Case {
  uint32_t output = 0; ///< the buffer
  Elem elem = Elem::none;
  Bound bound;
  bool isPlain = true; ///< no expression and no loop: must not be refused
};

/// Instructions of one row, side by side in one Program.
struct Cases {
  program::Program program;
  std::vector<std::vector<char>> contents; ///< per buffer; empty: a constant
  std::vector<Case> cases;                 ///< per instruction
};

/// `rows`: all of the backend. Instructions come in pairs that differ in little but attributes and
/// data, so that two kernels that are taken for one are found.
Cases casesOf(const cdl_row_t& row, const std::vector<cdl_row_t>& rows, uint64_t seed, int pairs);

} // namespace candela::test
