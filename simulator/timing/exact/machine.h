#pragma once

#include <memory>
#include <optional>

#include "simulator/timing/exact/matrix.h"
#include "simulator/timing/exact/memory_side.h"
#include "simulator/timing/exact/requant.h"
#include "simulator/timing/exact/vector.h"
#include "simulator/timing/program_state.h"

namespace candela::npu::exact {

/// The queue of an engine, as rtl/command/cdl_npu_queue.sv.
struct Queue {
  struct Entry {
    Operation operation;
    uint32_t instruction;
    int64_t arrival; ///< the first cycle in which it may begin
  };
  std::deque<Entry> entries; ///< the one that runs is the first
  bool isRunning = false, isNop = false;
  int64_t free = 0;    ///< the end of what ran last
  InstructionTime now; ///< of what runs
  Counters counted{};
  Engine* engine = nullptr; ///< none: the configuration has not this engine

  /// What runs ends in this cycle.
  bool ends() const { return isRunning && (isNop || engine->isDone()); }
};

/// What a word says of its instruction.
InstructionTime timeOfWord(const Insn& insn, uint32_t instruction);

/// The NPU of rtl/top, cycle by cycle, without data.
class Machine {
public:
  Machine(const Configuration& configuration, const Binary& binary, const ScheduleOptions& options);
  /// Runs the program. Errors: those of Schedule.
  Result<TimeReport> run();

private:
  struct Semaphore {
    int count = 0, signalled = 0; ///< tokens, and those that are there from the next cycle on
    std::deque<uint32_t> from;    ///< the sequence of who signalled each
  };
  void connect();
  void cycle();
  /// What the memory gives in this cycle, and what it takes.
  void offerMemory();
  void passMemory();
  void askPorts();
  void stepControl();
  bool mayRun(const Insn& insn);
  void runOwn(const Insn& insn);
  void controlInstruction(const Insn& insn);
  void send(const Insn& insn);
  bool take(InstructionTime& time);
  void beginHead(int engine);
  void noteBeats();
  void retireEnded();
  void signal(const InstructionTime& time);
  void count(const InstructionTime& time, const Counters* counted, bool isMarked);
  void emit(InstructionTime& time);
  void clock();
  void fail(uint32_t instruction, std::string_view text);
  void failStuck();

  const Configuration& configuration_;
  const Binary& binary_;
  const ScheduleOptions& options_;
  Dram dram_;
  std::unique_ptr<MemoryPort> port_;
  Placement placement_;
  Counting counting_;
  std::vector<Insn> code_;
  TimeReport report_;
  std::optional<Error> error_;

  std::vector<std::unique_ptr<LoadChannel>> loads_;
  std::vector<std::unique_ptr<StoreChannel>> stores_;
  MatrixEngine matrix_;
  RequantEngine requant_;
  VectorEngine vector_;
  std::array<Queue, kEngineCount> queues_;
  Scratchpad scratchpad_;
  std::vector<PortRequest*> ports_;
  AccumulatorPorts accumulators_;
  Fetch fetch_;
  Arbiter arbiter_;
  Transactions transactions_;
  std::vector<BurstRequest*> requests_;
  std::vector<bool> isWrite_;

  std::array<Semaphore, kSemaphores> semaphores_;
  int64_t now_ = 0, countedFrom_ = 0;
  uint64_t countedBefore_ = 0;
  ProgramState state_;
  uint32_t sequence_ = 0;
  bool hasWord_ = false, isHalted_ = false, isCounting_ = true, hasMoved_ = false;
  InstructionTime own_;                     ///< of the control processor's word
  bool isOwnTaken_ = false;                 ///< its tokens are
  std::optional<InstructionTime> ownEnded_; ///< of control, that ends in this cycle
  bool isOwnMarked_ = false;
};

} // namespace candela::npu::exact
