// What the kernels of a CPU that sum products share: a work-item computes some neighbouring results
// of 16 columns (channels), a panel of weights.
//
// Products of 8 bits are summed in f32 too, which CPUs multiply and add fastest: less their zero
// points, both factors are below 256, so that a sum of 256 of them is below 2^24 and exact. Such
// sums are then added as integers.
#pragma once

#include "sums.hpp"

namespace program {

constexpr int64_t kExact = 256; // products of 8 bits whose sum f32 holds

/// The number of results up to `most` with which the fewest are computed in vain; of equal ones
/// the larger.
int64_t pointsFor(int64_t columns, int64_t most);

class PanelSums {
protected:
  /// Writes the beginning: the place of the work-item and its operands, as the variables n, g,
  /// panel, row and col; live, how many of the 16 lanes there are, where that differs; pointers a
  /// and b, where there is one, to its first numbers, and zero points aZero and bZero of integers.
  PanelSums(const Instruction& instr, const Sums& sums, int64_t points);
  /// Writes the end: what follows the sums of all results, in the array of this name.
  KernelText finish(const std::string& sums);
  /// The same where the sums are the variables f0, f1 and so on, one for each result.
  KernelText finishFloats();
  /// The column of point p from the work-item's first on. Beyond the last one it is that again.
  std::string columnOf(int64_t p) const;

  const Sums& s_;
  const int64_t points_, tiles_; // results of a work-item, work-items of a row
  std::string a_;                // the pointer to all of a
  Writer w_;

private:
  void writePlace();
  void writeOperands();
  void writeZeroPoints(const std::string& zeros);

  std::optional<SumsEnd> end_;
};

} // namespace program
