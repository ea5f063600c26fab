// SCALED_MATMUL as its kernels see it: y[m,n] = sum over blocks of (a . (w - zero)) * scale.
//
// Constant weights lie in panels of 16 columns, which the backend packs when a model is compiled:
// block after block, a byte of each column side by side. A byte holds one weight, or neighbours
// along the sum, the first of them in the low bits. So 16 bytes are a vector of weights, a column
// in each lane, whatever their type. Scales and zero points of constants lie in such panels too, a
// number of each column for each block. What is computed in a run is read as it lies. Signed
// weights of 4 bits are 8 more in panels, where all of them are unsigned.
//
// Where a is rounded, ends within a block or has no neighbours side by side, a kernel of its own
// writes it out in whole blocks first, so that each is rounded once and no product has an end to
// look at. Rounded numbers and weights less their zero points are multiplied as floats: sums of a
// block are below 2^24 and exact, as those of products of 8 bits are (panel_sums.hpp). With weights
// of 4 bits a CPU does better in 16 bits, scaled_shorts.cpp.
#pragma once

#include "panel_sums.hpp"

namespace program {

// The opaque layouts of weights and of what belongs to their blocks.
constexpr const char* kWeightPanels = "weight panels";
constexpr const char* kBlockPanels = "block panels";

constexpr int64_t kMostInExactBlock = 16384;
constexpr int64_t kMostInDynamicBlock = 256; // products below 383 * 127, whose sum f32 holds

struct ScaledSums {
  Sums grid; ///< of the results: a row of a is a column of the grid
  const cdl_view_t *w = nullptr, *scale = nullptr, *zero = nullptr;
  int64_t rows = 0;
  int64_t depth = 0;
  int64_t outs = 0;
  int64_t blocks = 0;
  int64_t block = 0;
  bool isDynamic = false;
  bool isPacked = false;  ///< w lies in panels
  bool hasShorts = false; ///< rounded numbers and products have 16 bits

  /// Elements of a row with those that fill its last block.
  int64_t held() const { return blocks * block; }
  int64_t bits() const { return cdl_elem_bits(w->elem); }
  bool isSigned() const { return w->elem == CDL_I4 || w->elem == CDL_I8; }
  int64_t perByte() const { return 8 / bits(); }
  /// Vectors of 16 bytes that a block of a panel takes.
  int64_t vectors() const { return (block + perByte() - 1) / perByte(); }
  int64_t panelBytes() const { return blocks * vectors() * kLanes; }
  /// Numbers of a block that a kernel writes out: with 16 bits they go in pairs.
  int64_t written() const { return hasShorts ? vectors() * perByte() : block; }
  /// What is added to the weights in panels.
  int64_t excess() const { return w->elem == CDL_I4 ? 8 : 0; }
  /// Where the steps of rounded blocks lie in the scratch, and behind them the sums of their
  /// numbers.
  int64_t stepsAt() const { return rows * grid.aSteps.column * int64_t{sizeof(float)}; }
  int64_t totalsAt() const { return stepsAt() + rows * blocks * int64_t{sizeof(float)}; }
  int64_t scratchBytes() const { return totalsAt() + rows * blocks * int64_t{sizeof(float)}; }
};

/// The operands beside a, as texts that read them.
class ScaledOperands {
public:
  /// Makes them parameters of the kernel.
  ScaledOperands(const Instruction& instr, const ScaledSums& sums, Writer& writer);

  /// The scales or zero points of the 16 columns of `panel` in a block. Lanes beyond the last
  /// column have any.
  std::string scales(const std::string& block) { return ofPanel(scale_, block); }
  std::string zeros(const std::string& block) { return ofPanel(zero_, block); }
  /// Those of one column.
  std::string scale(const std::string& column, const std::string& block) const {
    return ofColumn(scale_, column, block);
  }
  std::string zero(const std::string& column, const std::string& block) const {
    return ofColumn(zero_, column, block);
  }
  /// A weight of one column less its zero point.
  std::string weight(const std::string& column, const std::string& block,
                     const std::string& element) const;
  /// Of the weights in a vector of bytes, those that stand at `at` in each.
  std::string weights(const std::string& bytes, int lanes, int64_t at) const;
  /// " - " and the zero points, where there are some.
  std::string less(const std::string& zeros) const { return zero_.view ? " - " + zeros : ""; }
  bool hasZero() const { return zero_.view != nullptr; }
  /// What one of the rounded numbers of a row stands for.
  std::string step(const std::string& row, const std::string& block) const;
  /// The sum of the rounded numbers of a row in a block, where they have 16 bits.
  std::string total(const std::string& row, const std::string& block) const;
  /// The pointer to the weights.
  const std::string& bytes() const { return w_; }

private:
  struct PerBlock {
    const cdl_view_t* view = nullptr;
    std::string pointer;
    bool isPacked = false;
  };

  std::string ofPanel(const PerBlock& operand, const std::string& block);
  std::string ofColumn(const PerBlock& operand, const std::string& column,
                       const std::string& block) const;
  std::string bitsOf(const std::string& column, const std::string& block,
                     const std::string& element) const;

  const ScaledSums& s_;
  Writer& writer_;
  std::string w_, steps_, totals_;
  PerBlock scale_, zero_;
  int names_ = 0;
};

// The kernels of a CPU, scaled_shorts.cpp and scaled_panels.cpp, and of a GPU, scaled_tiles.cpp.
KernelText writeScaledShorts(const Instruction& instr, const ScaledSums& sums,
                             const Profile& profile);
KernelText writeScaledPanels(const Instruction& instr, const ScaledSums& sums,
                             const Profile& profile);
KernelText writeScaledTiles(const Instruction& instr, const ScaledSums& sums,
                            const Profile& profile);

/// Writes a constant in one of the layouts above.
cdl::Status packPanels(const std::string& layout, const cdl::Operand& constant,
                       const cdl::Writer& to);

} // namespace program
