#pragma once

#include <deque>

#include "simulator/counters/counting.h"
#include "simulator/func/execution.h"
#include "simulator/func/semaphores.h"

namespace candela::npu {

/// The control processor and the queues, for one run of a decoded program.
class Machine {
public:
  Machine(const Configuration& configuration, const FunctionalOptions& options,
          const Binary& binary, const std::vector<Insn>& code, Memory& memory,
          bool isCounting = true);
  RunReport run();

  // Step by step instead, as SteppedDevice says.
  bool word();
  bool advance(int engine);
  const RunReport& report() const { return run_; }
  uint32_t semaphore(int index) const {
    return static_cast<uint32_t>(semaphores_[static_cast<size_t>(index)].count());
  }

private:
  struct Entry {
    uint32_t instruction;
    Insn insn; ///< with its index registers added
    DescriptorBits d, second;
    size_t order; ///< into dispatchOrders_
  };
  struct Loop {
    uint32_t begin, end; ///< first instruction of the body, and the one behind it
    int64_t left;
  };

  template <typename Work> bool guarded(Work work);
  bool controlStep();
  void controlInstruction(const Insn& insn);
  void jumpBack();
  bool dispatch(const Insn& insn);
  bool isReady(int engine) const;
  bool takeToken(const Insn& insn, int engine);
  void signal(const Insn& insn, int engine);
  void execute(int engine);
  void count(const Entry& entry);
  void retire(const Insn& insn, int engine, uint32_t instruction);
  [[noreturn]] void deadlock();
  std::string describe(uint32_t instruction) const;

  const Configuration& configuration_;
  const FunctionalOptions& options_;
  const Binary& binary_;
  const std::vector<Insn>& code_;
  Memory& memory_;
  const Kernels& kernels_;
  MatrixState matrix_;
  Counting counting_;

  uint32_t pc_ = 0;
  bool halted_ = false;
  std::string controlWaits_; ///< what the control processor stands at
  std::vector<Loop> loops_;
  std::array<int32_t, kIndexRegisters> index_{};
  std::array<DescriptorBits, kDescriptors> descriptors_{};
  std::array<std::deque<Entry>, kEngineCount> queues_;
  std::array<Clock, kEngineCount> clocks_{};
  std::vector<Clock> dispatchOrders_{Clock{}};
  std::array<Semaphore, kSemaphores> semaphores_;
  std::vector<Access> accesses_{Access{}};
  uint32_t current_ = 0; ///< the instruction that a fault is of
  bool isCounting_;
  uint64_t retired_ = 0;
  uint64_t budget_;
  RunReport run_;
};

} // namespace candela::npu
