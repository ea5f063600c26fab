// The one register-tile emitter: sums of products over any grid of results, which is matrix
// multiplication and direct convolution alike. A tile keeps points x panels of results in
// registers; each step loads one vector of weights per panel and broadcasts one element of the
// other operand per point. What makes it fast is that no sum leaves its register until it is done,
// and that there are more of them than a multiply-add takes cycles (Goto and van de Geijn, "Anatomy
// of high-performance matrix multiplication", ACM TOMS 34(3), 2008). The shapes of tiles are those
// that a model of cycles and registers likes best (costOf in contraction.cpp). No clock decides
// about them: tests/backends/cpu/assembly_lint.py holds properties of their machine code, such as
// how many multiplications the hot block has at least, how many instructions for each of them at
// most, and how many vectors lie in stack memory.
#pragma once

#include "arithmetic.hpp"

#include <optional>

namespace cpu {

/// The lanes of a panel: results lie in panels of this many neighbouring columns of b, whatever the
/// vector length is.
constexpr int kPanel = 16;

/// How an operand steps through the grid of results, in bytes.
struct Plane {
  uint8_t elem = 0;
  Arg at;
  int64_t batch = 0, group = 0, panel = 0, row = 0, column = 0;
  // between the results of a panel: the size of an element, or 0 for one that they share
  int64_t lane = 0;
};

void addKey(Key& key, const Plane& plane);

/// Panels that follow each other and hold the same number of channels: all whole ones, or the last
/// one with what is left.
struct PanelRun {
  int64_t first, count, lanes;
};

/// The panels of `held` channels each that `channels` of them take; no run is empty.
std::vector<PanelRun> panelRuns(int64_t channels, int64_t held);

/// An axis of the sum: how far a and b move per step, in bytes.
struct SumAxis {
  int64_t count = 1, a = 0, b = 0;
};

/// What a sum is scaled in.
enum class Scaling : uint8_t {
  F32,   // saturatesInF32() holds for every channel, and all have one zero point
  F64,   // by channel: scale and zero point
  WORDS, // integers: products of 32 bits by 32, shifted
};

/// The end of an integer sum: clamp(rne(value * scale) + zero).
struct Requantize {
  RescaleForm form;
  uint8_t elem = 0; // of the result
  Scaling scaling = Scaling::F64;
  Plane scale; // of f32, of f64, or WORDS: of i32, to be shifted
  // What channels have of their own; without a plane all have `uniformShift` and `uniformZero`.
  std::optional<Plane> shift, zero; // shift: of WORDS
  int64_t uniformShift = 0, uniformZero = 0;
};

/// A RESCALE of two operands that then joins the sum, its first one, with another tensor of the
/// same shape.
struct Join {
  JoinRescale joining;
  Plane other;
};

/// What one element of the last axis of a sum is, in a and in b.
enum class Factors : uint8_t {
  FLOATS, // an f32
  BYTES,  // four u8 and four s8, interleaved in b
  HALVES, // two bf16 each, interleaved in b; summed in f32
};

/// A grid of sums: y[batch, group, panel * kPanel + lane, row, column] = sum over axes of a * b,
/// then the epilogue.
struct Contraction {
  int64_t batch = 1, groups = 1, panels = 1, rows = 1, columns = 1;
  // of the image, where its rows were joined into one of all columns; else 0
  int64_t width = 0;
  int lastLanes = kPanel; // results in the last panel of a group that exist
  Factors factors = Factors::FLOATS;
  bool aIsSigned = false; // BYTES: a holds s8: what signMove() says, `bias` must undo
  Plane a;
  Arg b;
  int64_t bBatch = 0, bGroup = 0, bPanel = 0;
  std::vector<SumAxis> axes; // outer to inner; the last one is the unrolled one
  std::optional<Plane> bias; // added to the sum: i32 of BYTES
  bool accumulates = false;  // onto what y holds
  const cdl_expr_t* epilogue = nullptr;
  // that the epilogue reads, by index of the instruction's inputs
  std::vector<std::optional<Plane>> views;
  std::optional<Requantize> requantize; // then
  std::optional<Join> join;             // behind requantize
  Plane y;                              // its elem: of the result; lane: its size
  uint8_t accElem = CDL_F32;

  bool isInt8() const { return factors == Factors::BYTES; }
  bool isPacked() const { return factors != Factors::FLOATS; }

  /// Joins the rows of results into one.
  void flatten() {
    width = columns;
    columns *= rows;
    rows = 1;
  }
};

void emitContraction(Lowering& lowering, const Contraction& contraction);

/// Whether the isa has a tile unit and the sum is one for it.
bool takesTiles(const Isa& isa, const Contraction& contraction);
/// Whether products of bytes take the other sign than `a` has, so that its bytes are moved by 128.
inline bool takesOtherSign(const Isa& isa, bool aIsSigned) {
  return aIsSigned != isa.hasSignedDot4;
}
/// How far a kernel without tiles moves `a`: 128, -128 or 0.
inline int64_t signMove(const Isa& isa, bool aIsSigned) {
  if (!takesOtherSign(isa, aIsSigned)) return 0;
  return aIsSigned ? 128 : -128;
}
/// The same of a contraction.
inline int64_t signMove(const Isa& isa, const Contraction& c) {
  return takesTiles(isa, c) ? 0 : signMove(isa, c.aIsSigned);
}
void emitTiles(Lowering& lowering, const Contraction& contraction);

/// A part of a packing: elements at src + sum(i * srcStrides) go to dst + sum(i * dstStrides), all
/// in elements.
struct PackedPiece {
  std::vector<int64_t> dims, srcStrides, dstStrides;
  int64_t src = 0, dst = 0;
};

/// Packs `from` into `elements` elements, zero where no piece goes: once at compile time when it is
/// a constant, else by a kernel of each execution.
Arg packed(Lowering& lowering, const Operand& from, int64_t elements,
           const std::vector<PackedPiece>& pieces);

/// The attributes of a convolution.
struct Conv2d {
  int64_t stride[2], dilation[2], begin[2], end[2], group;
};
bool emitConvInt8(Lowering& lowering, const cdl_instr_t& instr, const Conv2d& g, std::string& why);
/// Of bf16 with channels last.
bool emitConvBF16(Lowering& lowering, const cdl_instr_t& instr, const Conv2d& g, std::string& why);

/// The value of a one-element operand of 8 bits, when it is a constant.
bool knownInteger(const Lowering& lowering, const Operand& operand, int64_t& value);

/// The payload of a constant at compile time, at the view's first element; null for anything else.
const char* payloadOf(const Lowering& lowering, const Operand& operand);

} // namespace cpu
