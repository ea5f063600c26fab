#pragma once

#include <array>
#include <vector>

#include "simulator/timing/compute.h"

namespace candela::npu {

/// Where a program stands: what words of the control processor change besides counters and
/// semaphores, and what it adds to the words that it sends.
class ProgramState {
public:
  /// The words from `first` to the one before `end`.
  ProgramState(uint32_t first, uint32_t end) : end_(end), pc_(first) {}

  uint32_t pc() const { return pc_; }
  /// Behind the last word.
  bool hasEnded() const { return pc_ >= end_; }

  /// loop, movi, addi and setd; others change nothing here. Errors: a loop that does not fit into
  /// what it lies in.
  Outcome apply(const Insn& insn);
  /// To the next word, or back to where a loop begins.
  void advance();
  /// A word as its engine gets it: with index registers added, and with descriptors. Errors: those
  /// of operationOf.
  Result<Operation> operation(const Insn& insn) const;

private:
  struct Loop {
    uint32_t begin, end;
    int64_t left;
  };

  uint32_t end_;
  uint32_t pc_;
  std::vector<Loop> loops_;
  std::array<int32_t, kIndexRegisters> index_{};
  std::array<DescriptorBits, kDescriptors> descriptors_{};
};

} // namespace candela::npu
