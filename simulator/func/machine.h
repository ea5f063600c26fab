#pragma once

#include <deque>

#include "simulator/counters/counting.h"
#include "simulator/func/execution.h"
#include "simulator/func/semaphores.h"

namespace candela::npu {

/// What the cores of one run share, beside the memory.
struct SharedRun {
  SharedRun(const Configuration& configuration, const FunctionalOptions& options)
      : budget(options.maxOperations), posts(slotOf(configuration.cores(), 0)) {}

  std::vector<Access> accesses{Access{}};
  uint64_t budget; ///< operations that may still be done
  uint64_t retired = 0;
  std::vector<std::vector<Clock>> posts; ///< by slot of an engine: what each event was behind
};

/// The control processor and the queues of one core, for one run of a decoded program.
class Machine {
public:
  /// Keeps references: all must outlive it. `code`: of all cores.
  Machine(const Configuration& configuration, const FunctionalOptions& options,
          const Binary& binary, const std::vector<Insn>& code, size_t core, Memory& memory,
          SharedRun& shared, bool isCounting = true);
  /// Runs until nothing can go on without other cores, or to a fault. Whether anything did.
  bool goOn();
  bool hasHalted() const { return halted_; }
  /// What each engine stands at, for a fault.
  std::string standing() const;
  /// Stops with that text: nobody can go on.
  void stopStuck(const std::string& text);

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
  bool round();
  bool mayBegin(const Insn& insn) const;
  bool controlStep();
  void controlInstruction(const Insn& insn);
  void jumpBack();
  bool dispatch(const Insn& insn);
  bool isReady(int engine) const;
  bool takeToken(const Insn& insn, int engine);
  void meetCores(const Insn& insn, int engine);
  void orderControl(const Insn& insn, uint32_t mask);
  std::string waitText(const Insn& insn) const;
  void signal(const Insn& insn, int engine);
  void execute(int engine);
  void count(const Entry& entry);
  void retire(const Insn& insn, int engine, uint32_t instruction);
  std::string describe(uint32_t instruction) const;

  const Configuration& configuration_;
  const FunctionalOptions& options_;
  const Binary& binary_;
  const std::vector<Insn>& code_;
  const size_t core_;
  const uint32_t end_; ///< behind the last instruction of the core
  Memory& memory_;
  SharedRun& shared_;
  const Kernels& kernels_;
  MatrixState matrix_;
  Counting counting_;

  uint32_t pc_;
  bool halted_ = false;
  std::string controlWaits_; ///< what the control processor stands at
  std::vector<Loop> loops_;
  std::array<int32_t, kIndexRegisters> index_{};
  std::array<DescriptorBits, kDescriptors> descriptors_{};
  std::array<std::deque<Entry>, kEngineCount> queues_;
  std::array<Clock, kEngineCount> clocks_;
  std::vector<Clock> dispatchOrders_;
  std::array<Semaphore, kSemaphores> semaphores_;
  uint32_t current_ = 0; ///< the instruction that a fault is of
  bool isCounting_;
  RunReport run_;
};

} // namespace candela::npu
