#pragma once

#include <vector>

#include "simulator/func/shadow.h"

namespace candela::npu {

/// A counting semaphore that also carries order. Who takes n of m tokens is ordered behind what any
/// n of them would guarantee: for each engine, the n-th smallest of what the tokens were behind.
/// With one signalling engine that is the n-th token; with all tokens taken, all of them.
class Semaphore {
public:
  int count() const { return count_; }
  void signal(const Clock& clock, int tokens);
  /// Needs count() >= tokens.
  Clock take(int tokens);

  int lastWaiter = -1;   ///< the engine that took last; -1: none did
  uint32_t lastWait = 0; ///< the place of the instruction that took, among those of its slot

private:
  int count_ = 0;
  std::vector<std::vector<uint32_t>> behind_; ///< by slot of an engine, ascending
};

} // namespace candela::npu
