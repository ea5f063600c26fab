#pragma once

#include "simulator/binary/binary.h"
#include "simulator/timing/compute.h"
#include "simulator/timing/dram.h"

namespace candela::npu {

/// One transfer as bursts: which bytes of DRAM it asks for, and how long its port to the scratchpad is busy.
class Movement {
public:
  Movement() = default;
  /// `base`: the address of its region. Errors: a region that the program has not, bytes outside of it.
  static Result<Movement> of(const Configuration& configuration, const Operation& operation, const Binary& binary,
                             const std::vector<uint64_t>& bases);

  struct Burst {
    uint64_t address;
    int64_t bytes;
    int64_t port; ///< cycles of the port to the scratchpad that go with it
  };
  bool isDone() const { return left_ == 0; }
  /// The next one, at most `limit` bytes that end at a multiple of `limit`.
  Burst next(int64_t limit);

  bool isDram() const { return isDram_; }
  bool isStore() const { return isStore_; }
  /// Bytes on the side of DRAM, and on that of the scratchpad with the padding.
  int64_t farBytes() const { return farBytes_; }
  int64_t nearBytes() const { return nearBytes_; }
  /// Cycles of the port to the scratchpad (of copy: of the busier one of two), one word a cycle, runs by themselves.
  int64_t portCycles() const { return portCycles_; }
  int64_t words() const { return portCycles_; }
  /// Runs on the side of DRAM, neighbours together, and the bytes of one; the shortest step between two.
  int64_t farRuns() const { return farRuns_; }
  int64_t farRun() const { return run_; }
  int64_t farStep() const { return step_; }

private:
  int64_t portUntil(int64_t bytes) const;

  bool isDram_ = false, isStore_ = false;
  int64_t run_ = 0, lengths_[3] = {1, 1, 1}, strides_[3] = {};
  int64_t farBytes_ = 0, nearBytes_ = 0, portCycles_ = 0, farRuns_ = 0, step_ = 0;
  uint64_t start_ = 0;
  int64_t index_[3] = {}, offset_ = 0, moved_ = 0, left_ = 0; ///< runs left, and where in the first of them
};

/// Cycles of the memory's data bus, in cycles of the NPU, that a transfer takes by bytes, rows, refresh and turns.
double memoryCycles(const Dram& dram, const Configuration& configuration, int64_t runs, int64_t run, int64_t step,
                    bool isStore);

} // namespace candela::npu
