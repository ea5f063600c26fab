// What the parts of SCALED_MATMUL share: what is multiplied, how its weights lie in memory, and
// rows that were rounded. `scaled_matmul.cpp` says how they work together.
#pragma once

#include "../limits.hpp"
#include "instructions.hpp"

#include <vector>

namespace cpu {

/// Whether weights of this type are floats of whole bytes, which kernels widen to f32; those of
/// four bits lie in words as integers do.
inline bool isFloatWeight(uint8_t elem) {
  return isHalf(elem) || elem == CDL_F8E4M3 || elem == CDL_F8E5M2;
}

/// What is multiplied.
struct ScaledProduct {
  std::vector<Operand> in; // a, w, scales, zero points, then what the epilogue reads
  Operand y;
  size_t operands = 0; // of `in`
  const cdl_expr_t* epilogue = nullptr;
  bool isDynamic = false;
  int64_t rows = 0;
  int64_t depth = 0;
  int64_t columns = 0;
  int64_t blocks = 0;
  int64_t block = 0;
  int64_t pieces = 1; // blocks here of one block of the operand, with one scale

  bool isSigned() const {
    return in[1].elem == CDL_I2 || in[1].elem == CDL_I4 || in[1].elem == CDL_I8;
  }
  bool hasFloatWeights() const { return isFloatWeight(in[1].elem); }
  /// Of a weight.
  int bits() const { return static_cast<int>(cdl_elem_bits(in[1].elem)); }
  bool hasZeros() const { return operands > 3; }
  /// What is added to signed weights that are kept unsigned.
  int offset() const { return isDynamic && isSigned() ? 1 << (bits() - 1) : 0; }
  /// Elements of a column with those that fill its last block.
  int64_t held() const { return blocks * block; }
  /// How far the first weight of a block lies from the operand's first.
  int64_t firstOf(int64_t column, int64_t g) const {
    const int64_t* strides = in[1].strides;
    return column * strides[0] + g / pieces * strides[1] + g % pieces * block * strides[2];
  }
};

/// How the weights lie in memory.
struct PanelForm {
  int lanes;
  int64_t blocks;
  int64_t words; // of a block
  bool hasZeros;

  int64_t vectorBytes() const { return int64_t(lanes) * 4; }
  int64_t wordsAt() const { return vectorBytes() * (hasZeros ? 2 : 1); }
  int64_t blockBytes() const { return wordsAt() + words * vectorBytes(); }
  int64_t panelBytes() const { return blocks * blockBytes(); }
};

PanelForm panelFormOf(const Lowering& lowering, const ScaledProduct& p);

/// Whether operand `index` has bytes while the model is compiled.
bool isKnownConstant(const Lowering& lowering, size_t index);

/// The bytes of all panels; operands 1 to 3 are known constants.
std::vector<char> packPanels(const Lowering& lowering, const ScaledProduct& p,
                             const PanelForm& form);

/// Rows of a, rounded to i8 block by block: the numbers, and of each block its step and what zero
/// points take off its sums.
struct RoundedRows {
  Arg numbers;
  Arg blocks;
  int64_t rowBytes;
  int64_t blockRowBytes;
};

constexpr int64_t kBlockRecord = 8; // the step; the sum of the numbers, or its multiple

/// Emits the rounding of all rows.
RoundedRows emitRounding(Lowering& lowering, const ScaledProduct& p);

/// The panels that a kernel is written for: a unit is `together` of them.
struct PanelGroup {
  int64_t first;
  int64_t count; // units
  int together;
  int live; // columns of each panel
};

/// What the kernels of products share. Their arguments: a or its numbers, records of its blocks
/// where it is rounded, panels, y, views.
class ScaledKernel {
public:
  ScaledKernel(Builder& b, const Lowering& lowering, const ScaledProduct& p, const PanelForm& form,
               const PanelGroup& group)
      : b_(b), image_(lowering.image), p_(p), form_(form), group_(group), lanes_(form.lanes),
        bits_(p.bits()), perWord_(static_cast<int>(weightsOfWord(p.bits()))) {}

protected:
  /// The weights of each lane's word at this address as f32, before zero point and scale.
  Values weightsAt(Value words);
  /// Stores the sums of row m, those of columns that are there.
  void finish(Value sum, Value m, Value panel);

  Builder& b_;
  const cdl_image_t* image_;
  const ScaledProduct& p_;
  const PanelForm& form_;
  const PanelGroup group_;
  const int lanes_;
  const int bits_;
  const int perWord_;

private:
  Value integerOf(Value word, int k);
  Value numberOf(Value word, int k);
  Value floatAt(Value words, int k);
  Value addressOf(const Operand& o, int arg, Value m, Value n);
  void store(Value sum, Value m, Value n);
};

/// Panels that go together where rows are many.
constexpr int kPanelsTogether = 2;

/// Whether an exact product decodes its weights into memory, for all rows.
bool hasManyRows(const ScaledProduct& p, const PanelForm& form);

/// Writes the kernel of such a product.
void writeManyRows(Builder& b, const Lowering& lowering, const ScaledProduct& p,
                   const PanelForm& form, const PanelGroup& group);

} // namespace cpu
