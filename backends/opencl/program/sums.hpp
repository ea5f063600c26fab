// MATMUL and CONV2D as their kernels see them: sums of products over a grid of results.
#pragma once

#include "image.hpp"
#include "profile.hpp"

#include <optional>

namespace program {

/// How an operand steps through the grid, in elements.
struct Steps {
  int64_t batch = 0;
  int64_t group = 0;
  int64_t panel = 0;
  int64_t lane = 0;
  int64_t row = 0;
  int64_t column = 0;

  bool canBeFlat(int64_t columns) const { return row == columns * column; }
};

/// An axis of the sum.
struct Axis {
  int64_t count = 1;
  int64_t a = 0; // what a step adds to the place in each operand
  int64_t b = 0;
};

/// Where rows or columns of the window leave the image.
struct Edge {
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad = 0;
  int64_t extent = 0;
  bool isFree = true; // what lies outside can be read, and counts for nothing

  bool isNeeded(int64_t results) const {
    if (isFree) return false;
    return pad != 0 || (results - 1) * stride + (kernel - 1) * dilation >= extent;
  }
};

/// y[batch, group, panel * 16 + lane, row, column] = sum over axes of a * b.
struct Sums {
  const cdl_view_t *a = nullptr, *b = nullptr, *y = nullptr;
  const cdl_view_t *aZero = nullptr, *bZero = nullptr;
  int64_t batch = 1;
  int64_t groups = 1;
  int64_t outs = 0; // of a group
  int64_t rows = 1;
  int64_t columns = 1;
  Steps aSteps, bSteps, ySteps;
  std::vector<std::optional<Steps>> views; // that the epilogue reads, by index of the inputs
  std::vector<Axis> channels;              // outer to inner, the last one innermost
  Axis down, across;                       // of the window
  int64_t aOffset = 0;           // of the first tap of the first result, which may be a pad
  std::array<Edge, 2> edges;     // of rows, of columns
  bool hasPaddedWeights = false; // lanes beyond `outs` can be read
  bool hasScratch = false;       // a is what a kernel before has written there
  bool accumulates = false;

  bool isInteger() const { return a->elem != CDL_F32; }
  /// What a kernel sums in the end.
  uint8_t sumElem() const { return isInteger() ? CDL_I32 : CDL_F32; }
  int64_t panels() const { return (outs + kLanes - 1) / kLanes; }
  bool hasTail() const { return outs % kLanes != 0; }
};

/// The instruction as sums; false: it is none, or of types or layouts that no kernel here takes.
bool describeSums(const Instruction& instr, Sums& sums);

/// Where the element lies that the variables n, g, panel, row and col of a kernel choose, behind
/// the first one of its view.
std::string placeOf(const Steps& steps);

/// Writes the values that end an instruction: `sum` with what was there and the steps of its
/// expression, into `lanes` results. `lane` and `column` move from the place that the variables
/// choose: text, in lanes and columns, empty for none.
class SumsEnd {
public:
  /// Makes the views that it reads and writes parameters of the kernel.
  SumsEnd(const Instruction& instr, const Sums& sums, Writer& writer);
  void write(int lanes, const std::string& lane, const std::string& column, const std::string& sum);

private:
  const Instruction& instr_;
  const Sums& sums_;
  Writer& w_;
  std::vector<std::string> pointers_; // of what the epilogue reads, by index of the inputs
  std::string y_;
};

// The kernels of a CPU: row_sums.cpp, and block_sums.cpp for products of matrices that are not
// packed. Of a GPU: tile_sums.cpp.
KernelText writeRowSums(const Instruction& instr, const Sums& sums, const Profile& profile);
KernelText writeBlockSums(const Instruction& instr, const Sums& sums, const Profile& profile);
KernelText writeTileSums(const Instruction& instr, const Sums& sums, const Profile& profile);

} // namespace program
