#pragma once

#include <span>

#include "core/compiler/program/program.h"

/// How the members of a group run band by band: which rows of its result each of them computes in
/// each band, and what of memory that touches. In band k every member in turn computes the rows
/// from where it stopped in band k - 1 to `done[k]`; the last band ends with all rows, and each row
/// is computed once.
namespace candela::program {

/// Along which dim of a view rows follow each other: index i of that dim belongs to row i / inner %
/// rows.
struct RowAxis {
  uint32_t dim = kNone; ///< kNone: every row of the result may read all of the view
  int64_t rows = 0, inner = 1;
  friend bool operator==(const RowAxis&, const RowAxis&) = default;
};

/// Rows first .. last - 1.
struct Rows {
  int64_t first = 0, last = 0;
};

struct BandMember {
  uint32_t instr = kNone;
  RowAxis output;
  std::vector<RowAxis> inputs;
  bool isWindow = false;                   ///< over input 0; else row r of the result reads row r
  int64_t stride = 1, pad = 0, extent = 1; ///< of the window, in rows of input 0
  std::vector<int64_t> done;               ///< rows of the result at the end of each band

  /// The rows of an input that a range of rows of the result reads; a window's reach into its
  /// padding.
  Rows rowsRead(size_t input, const Rows& result) const;
  /// What band k computes, and what is left behind it.
  Rows rowsOf(uint32_t band) const { return {band ? done[band - 1] : 0, done[band]}; }
  Rows rowsBehind(uint32_t band) const { return {done[band], output.rows}; }
};

/// These instructions in `bands` bands. Logical dim `bandDim` of the first result that a member
/// writes is cut into rows, and so is what later members compute from it. Who is read by no later
/// member does rows * (k + 1) / bands in band k; the others as far as their readers need. Failure:
/// bad_model, an instruction that cannot run in bands.
Result<std::vector<BandMember>> bandsOf(const Program& program, std::span<const uint32_t> instrs,
                                        uint32_t bandDim, uint32_t bands);

/// The instructions of a group.
std::vector<uint32_t> membersOf(const Group& group);

/// Whether instructions of this kind can run in bands at all, in logical dims that `bandDim` may be
/// of.
bool isBandable(const Instr& instr);

/// The most bytes that the buffers in `inside` hold at once in rows that are computed and not yet
/// read for the last time. `bytes`: of the content of each buffer.
uint64_t bytesHeld(const Program& program, std::span<const BandMember> members,
                   const std::vector<bool>& inside, std::span<const uint64_t> bytes);

/// Whether the group computes band by band what it computes instruction by instruction: of any two
/// pieces of work that change places, neither may write what the other touches. Groups of one band
/// are always legal. Failure: bad_model, naming instruction, value and the bytes or rows that
/// disagree. In verify_bands.cpp.
Status verifyBands(const Program& program, const Group& group);

} // namespace candela::program
