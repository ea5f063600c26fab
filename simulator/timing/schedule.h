// A program in time, by discrete events: engines are processes that sleep until something happens
// to them, and the earliest event is always the next one. Nothing is stepped cycle by cycle:
// compute takes what a closed form says, a transfer is as many events as it has bursts or chunks,
// and the memory is a state that each access moves on. So the work follows instructions and bursts,
// not cycles.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "simulator/binary/binary.h"
#include "simulator/counters/counting.h"
#include "simulator/timing/movement.h"
#include "simulator/timing/placement.h"
#include "simulator/timing/program_state.h"
#include "simulator/timing/report.h"

namespace candela::npu {

/// What answers bursts and fetches where it is not the schedule's own Dram. With
/// Fidelity::kAccurate alone.
class MemoryPort {
public:
  virtual ~MemoryPort() = default;
  /// Does what Dram::access does.
  virtual int64_t access(int64_t cycle, uint64_t address, int64_t bytes, bool isWrite,
                         int requester) = 0;
  /// Does what Dram::drain does.
  virtual int64_t drain(int64_t cycle) = 0;
};

/// An observer of a schedule: computes values in the order of time, say. Called within step().
class Follower {
public:
  virtual ~Follower() = default;
  /// The control processor runs its next word, or sends it to a queue.
  virtual void word() = 0;
  /// The head of an engine's queue begins, and ends; the first burst of a transfer lies behind its
  /// begin, the last one before its end.
  virtual void begin(int engine, uint32_t instruction, const Operation& operation) = 0;
  virtual void end(int engine, uint32_t instruction, const Operation& operation) = 0;
};

struct ScheduleOptions {
  Fidelity fidelity = Fidelity::kAccurate;
  /// The most words and bursts; loops could otherwise run for years.
  uint64_t maxEvents = uint64_t{1} << 33;
  /// Called for each instruction that ends, in the order of ends (of one cycle: by engine).
  std::function<void(const InstructionTime&)> onRetire;
  /// Counts what the functional model would (simulator/counters/counting.h).
  bool counts = false;
  /// Called with `counts` for each instruction but nops and those of control, with what it counts
  /// alone.
  std::function<void(uint32_t instruction, const Counters&)> onCounted;
  bool isCounting = true;       ///< the PMU counts from the start on
  MemoryPort* memory = nullptr; ///< none: a Dram of the configuration
  Follower* follower = nullptr;
  std::optional<Placement> placement; ///< none: placementOf
};

class Schedule;

/// What the cores of one program share in time: the words, the memory, and which events each engine
/// has counted.
struct SharedTime {
  /// Keeps references. Errors of words stand in `error`.
  SharedTime(const Configuration& configuration, const Binary& binary);

  struct Token {
    int64_t cycle;
    uint32_t sequence;
  };
  /// A memory, and where time is fast its bus.
  struct Memory {
    explicit Memory(Dram chips) : dram(std::move(chips)) {}
    Dram dram;
    int64_t latency = 0;  ///< of a read of an open row, there and back
    double free = 0;      ///< when the bus is free
    double busy = 0;      ///< cycles that it was not
    double written = 0;   ///< cycles of it that went to writes
    bool hasRead = false; ///< the last chunk was one that is read
    uint64_t bursts = 0;
  };
  std::vector<Insn> code; ///< of all cores
  std::optional<Error> error;
  std::vector<Memory> memories; ///< dram, and second where something lies there
  /// With weights.compression, where the program brings its constants along.
  CompressedConstants compressed;
  uint64_t events = 0;
  uint32_t sequence = 0;
  /// by core * kEngineCount + engine: when others see each event, and whose it was
  std::vector<std::vector<Token>> posts;
  std::vector<Schedule*> cores;
  size_t halted = 0;
  int64_t end = 0; ///< when all had halted and the memory had all writes
};

/// The code of one core in time: one process for each engine, which sleeps until something happens
/// to it, and one for the control processor. Somebody drives it: takes the process with the
/// earliest event, of several the lowest, and steps it.
class Schedule {
public:
  static constexpr int64_t kNever = INT64_MAX;

  /// Of a program for one core. Keeps references: all must outlive the schedule.
  Schedule(const Configuration& configuration, const Binary& binary,
           const ScheduleOptions& options);
  /// Of one core of several, which `shared` lists from then on. Keeps references, to `shared` too.
  Schedule(const Configuration& configuration, const Binary& binary, const ScheduleOptions& options,
           SharedTime& shared, size_t core);
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  /// The cycle of the next event of an engine's process (0: control), or kNever.
  int64_t eventOf(int engine) const { return processes_[static_cast<size_t>(engine)].event; }
  /// The process whose turn it is; -1: none, the program has ended or failed.
  int next() const;
  void step(int engine);
  /// The cycle of its next event, or kNever.
  int64_t nextEvent() const;
  /// How far the control processor came.
  int64_t now() const { return processes_[0].free; }

  /// Whether what finish() will say is an error, and no deadlock.
  bool hasFailed() const { return error_.has_value(); }

  /// What the PMU's counter of cycles shows in that cycle, and showed at a snapshot.
  uint64_t counted(int64_t now) const {
    return countedBefore_ + (isCounting_ ? static_cast<uint64_t>(now - countedFrom_) : 0);
  }
  uint64_t snapshotCycles(size_t slot) const {
    return report_.snapshots[slot][static_cast<size_t>(Counter::kCycles)];
  }

  /// Reports on the program, after its end. Errors: a word or descriptor that is none, no halt,
  /// bytes outside of a region, deadlock, too long. Of one core of several: without what the memory
  /// did, and without deadlock().
  Result<TimeReport> finish();
  /// What everything waits for; empty where the program has halted.
  std::string deadlock() const;

private:
  struct Entry {
    Operation operation;
    uint32_t instruction;
    int64_t arrival;
  };
  enum class State : uint8_t { kIdle, kWaits, kReady, kMoves, kRuns };
  struct Process {
    State state = State::kIdle;
    int64_t event = kNever;
    std::deque<Entry> queue;
    int64_t free = 0; ///< the end of its last instruction
    InstructionTime now;
    Counters counted{}; ///< of the instruction, with ScheduleOptions::counts
    Movement movement;
    size_t memory = 0; ///< of a transfer: in which its region lies
    Landing landing;   ///< accurate, of a load
    ComputeCost cost;
    Movement::Burst ahead{};      ///< of a transfer: the burst of the next event
    bool isLast = false;          ///< it was the last one
    int64_t issued = 0, port = 0; ///< bytes that were asked for; when the port is done
    int64_t arrived = 0;          ///< when the last burst was answered
    int64_t beats = 1;            ///< of the burst ahead
    int64_t asked = 0;            ///< of a store: when its request was sent
    /// when the last beats of a store's last bursts left its bytes, a ring
    std::vector<int64_t> sent;
    double perByte = 0;               ///< fast: cycles of the memory's bus
    double written = 0;               ///< fast: Memory::written when it asked last
    std::vector<int64_t> completions; ///< of the last bursts, a ring
    size_t burst = 0;
    int64_t last = 0;
    // What it does to the banks while it runs.
    int64_t rate = 0;   ///< words in 1,024 cycles
    int64_t spread = 1; ///< gcd of its step and the number of banks: 1 visits all of them
    int64_t until = 0;
  };
  using Token = SharedTime::Token;
  using Memory = SharedTime::Memory;
  void start();
  int64_t memoriesEnd(int64_t halt);
  void wake(int engine);
  void begin(int engine);
  /// Begins an instruction that computes, or a nop.
  void beginCompute(int engine);
  /// Begins one of a DMA channel, by one of the two below.
  void beginMovement(int engine);
  /// Begins a copy or a fill, which has its time at once.
  void beginWithinScratchpad(Process& p);
  /// Begins a load or a store: the first of many events, chunk by chunk or burst by burst.
  /// `memory`: cycles that the memory's bus takes.
  void beginTransfer(Process& p, double memory);
  void lookAhead(Process& p) const;
  static int64_t sendUntil(Process& p, int64_t asked);
  void land(Process& p) const;
  /// Cycles of a load behind its last word.
  static int64_t pipelineOf(const Process& p);
  void moveBurst(int engine);
  void moveChunk(int engine);
  void endMovement(int engine);
  void retire(int engine);
  void signal(const InstructionTime& ended);
  bool takeTokens(const Insn& insn, InstructionTime& now, int64_t& visible);
  /// The event that an await waits for; null: it is not there.
  const Token* awaitedBy(const Insn& insn) const;
  void post(int engine, const Insn& insn, const InstructionTime& ended);
  void wakeAwaiting(int64_t now);
  std::string awaitText(const Insn& insn) const;
  int64_t bankStall(int engine, int64_t cycles) const;
  void tag(Tag tag, int64_t cycles) { report_.tagged[static_cast<size_t>(tag)] += cycles; }

  /// What the control processor stands for, and until when: kNever where another process ends it.
  struct Blockage {
    Stall by;
    int64_t until;
  };
  void control();
  /// Whether an instruction for an engine meets a full queue.
  std::optional<Blockage> blockageOfQueue(const Insn& insn) const;
  /// What an instruction of the control processor itself waits for: engines that have to be idle,
  /// tokens that are not there.
  std::optional<Blockage> blockageOf(const Insn& insn) const;
  /// Stands still until the blockage ends.
  void block(const Blockage& blockage);
  /// Adds up for how long it stood, if it did.
  StallCycles unblock();
  /// Runs an instruction of the control processor itself.
  void runOwn(const Insn& insn, const StallCycles& stalls);
  /// Says how many cycles the program took, behind its halt.
  void endProgram();
  /// Moves to the next word: of a loop that is not done, to its first one.
  void controlInstruction(const Insn& insn);
  void dispatch(const Insn& insn);
  bool fetched();
  int64_t access(size_t memory, int64_t cycle, uint64_t address, int64_t bytes, bool isWrite,
                 int requester);
  /// The memory in which the region of a load or a store lies.
  size_t memoryOf(const Operation& operation) const;
  int64_t readMemory(int64_t cycle, uint64_t address, int64_t bytes, double perByte, int requester);
  void emit(InstructionTime& time);
  void count(int engine, bool isMarked, const Counters* counted);
  void flush(int64_t before);
  void fail(Error error);

  const Configuration& configuration_;
  const Binary& binary_;
  const ScheduleOptions& options_;
  std::unique_ptr<SharedTime> own_; ///< of a program for one core
  SharedTime& shared_;
  const size_t core_;
  const uint32_t end_; ///< behind the last word of the core
  Placement placement_;
  const Divisor byBeat_;
  Counting counting_;
  double fetchPerByte_ = 0;

  std::array<Process, kEngineCount> processes_;
  std::array<std::deque<Token>, kSemaphores> semaphores_;
  ProgramState state_;
  std::vector<int64_t> lineTags_, lineReady_;
  int64_t blockedSince_ = -1; ///< control: since when it stands
  Stall blockedBy_ = Stall::kNone;
  std::optional<InstructionTime> pending_; ///< of control, that ends in the next cycle
  bool halted_ = false, isCounting_;
  int64_t countedFrom_ = 0;
  uint64_t countedBefore_ = 0;
  std::optional<Error> error_;
  TimeReport report_;
};

/// Cycles of a transfer besides those of its bytes, and of a conv besides those of its passes: for
/// who chooses tiles.
int64_t transferOverhead(const Configuration& configuration);
int64_t productOverhead(const Configuration& configuration);

/// What the memory did, of a schedule's own Dram or of one that answered its bursts.
void addMemory(TimeReport& report, const Dram& dram);

/// Runs the whole program.
Result<TimeReport> timeOf(const Configuration& configuration, const Binary& binary,
                          const ScheduleOptions& options = {});

} // namespace candela::npu
