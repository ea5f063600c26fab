#pragma once

#include <vector>

#include "simulator/binary/binary.h"
#include "simulator/timing/compression.h"
#include "simulator/timing/compute.h"
#include "simulator/timing/dram.h"

namespace candela::npu {

/// One transfer as bursts: which bytes of DRAM it asks for, and how long its port to the scratchpad
/// is busy. A word moves up to scratchpad.bank_width bytes of one run, neighbouring runs together;
/// with padding those of a row, which shares no word with it.
class Movement {
public:
  Movement() = default;
  /// The transfer of an operation; `bases`: the addresses of the regions. `compressed`: how the
  /// constants lie in memory, null or empty: as they are; then a load of them moves the blocks that
  /// it needs, run by run and one behind the other. Errors: a region that the program has not,
  /// bytes outside of it.
  static Result<Movement> of(const Configuration& configuration, const Operation& operation,
                             const Binary& binary, const std::vector<uint64_t>& bases,
                             const CompressedConstants* compressed = nullptr);

  struct Burst {
    uint64_t address;
    int64_t bytes;
    /// words of the scratchpad that it is the last to complete, of a store those to be read before
    /// it
    int64_t port;
  };
  bool isDone() const { return left_ == 0; }
  /// The next one, at most `limit` bytes that end at a multiple of `limit`; of a copy a word of the
  /// source, of `limit` bytes at most.
  Burst next(int64_t limit);
  /// Words that need none of them: padding before the first.
  int64_t leadingWords() const { return isStore_ ? 0 : wordsWithin(0); }
  /// Words of the scratchpad's side that need no more than so many bytes of the other one.
  int64_t wordsWithin(int64_t bytes) const;
  /// Words of the scratchpad that the next `bytes` behind the first `before` are the last to
  /// complete.
  int64_t wordsOf(int64_t before, int64_t bytes) const {
    return portUntil(before + bytes) - portUntil(before);
  }
  /// Bytes of the other side in the bursts so far.
  int64_t asked() const { return moved_; }

  bool isDram() const { return isDram_; }
  bool isStore() const { return isStore_; }
  /// Of a load of compressed constants: their bytes when expanded; else 0.
  int64_t expandedBytes() const { return expandedBytes_; }
  /// Bytes on the side of DRAM, and on that of the scratchpad with the padding.
  int64_t farBytes() const { return farBytes_; }
  int64_t nearBytes() const { return nearBytes_; }
  /// Cycles of the port to the scratchpad (of copy: of the busier one of two), one word a cycle,
  /// runs by themselves.
  int64_t portCycles() const { return portCycles_; }
  /// Runs on the side of DRAM, neighbours together, and the bytes of one; the shortest step between
  /// two.
  int64_t farRuns() const { return farRuns_; }
  int64_t farRun() const { return run_; }
  int64_t farStep() const { return step_; }

private:
  struct Box; ///< runs of bytes: one side of a transfer
  /// Finds the first byte of DRAM; an error for bytes outside of the region.
  Outcome placeInRegion(const Box& far, const Operation& operation, const Binary& binary,
                        const std::vector<uint64_t>& bases);
  /// Puts the blocks that hold the bytes of a box in the place of the box.
  void compress(Box& far, int64_t at, const CompressedConstants& compressed);
  /// Counts the scratchpad's words: of a box with padding, of one without, and those that follow
  /// from either.
  void countPadded(const Box& near, const DescriptorValues& d);
  void countDense(Box near);
  int64_t wordsOfRun(int64_t bytes) const { return (bytes + (1 << widthLog2_) - 1) >> widthLog2_; }
  int64_t portUntil(int64_t bytes) const;

  bool isDram_ = false, isStore_ = false;
  /// The scratchpad's side: bytes of the other one in a plane and in a row of it, its runs, and its
  /// words.
  int widthLog2_ = 0;
  int64_t planeBytes_ = 1, rowBytes_ = 1, nearRun_ = 1;
  int64_t runWords_ = 0, topWords_ = 0, leftWords_ = 0, rowWords_ = 0, planeWords_ = 0, planes_ = 1;
  int64_t run_ = 0, lengths_[3] = {1, 1, 1}, strides_[3] = {};
  int64_t expandedBytes_ = 0;
  int64_t farBytes_ = 0, nearBytes_ = 0, portCycles_ = 0, farRuns_ = 0, step_ = 0;
  uint64_t start_ = 0;
  /// runs left, and where in the first of them
  int64_t index_[3] = {}, offset_ = 0, moved_ = 0, left_ = 0;
};

/// The scratchpad's side of a load or a copy in cycles: bytes wait in the channel until their word
/// is written.
class Landing {
public:
  /// The first word of a movement may be written in cycle `at`.
  void begin(const Configuration& configuration, const Movement& movement, int64_t at);
  /// The bytes that complete the next words are there in that cycle.
  void arrive(int64_t cycle, int64_t words);
  /// The cycle from which the channel has room to ask for the burst that Movement::next gave last.
  int64_t roomFor(const Movement& movement, const Movement::Burst& burst);
  /// The cycle from which all words so far are written.
  int64_t end() const { return port_; }

private:
  struct Stretch {
    int64_t begin, before, words; ///< words before..before + words - 1, one a cycle
  };
  int64_t room_ = 0, port_ = 0, words_ = 0;
  bool canFill_ = false;         ///< it is of more bytes than there is room
  std::vector<Stretch> written_; ///< if so, from first_ on
  size_t first_ = 0;
};
/// The cycles of a copy or a fill from its first word until all are written. Uses up the bursts; a
/// copy of millions of words takes those of its busier side.
int64_t cyclesWithin(const Configuration& configuration, Movement& movement);

/// Cycles of the memory's data bus, in cycles of the NPU, that a transfer takes by bytes, rows and
/// refresh.
double memoryCycles(const Dram& dram, const Configuration& configuration, int64_t runs, int64_t run,
                    int64_t step);
/// What so many bytes written take beside that while others read: the bus turns around each time
/// that the controller has gathered its writes, and these open their rows again.
double turningCycles(const Dram& dram, const Configuration& configuration, double bytes);

} // namespace candela::npu
