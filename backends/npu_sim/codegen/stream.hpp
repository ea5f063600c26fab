// The instruction stream: instructions in order with the bytes that each touches, and the
// semaphores that keep this order where bytes are shared. Engines run side by side, each its own
// instructions in order. So what is done when an instruction begins is a vector clock (Mattern,
// "Virtual time and global states of distributed systems", 1989): for each engine, how many of its
// instructions. An instruction waits for another engine only where it needs more of that than is
// known by the waits before it, and with a wait it comes to know all that the other one knew.
// Of several cores each has engines, scratchpad and accumulators of its own; where bytes of DRAM
// make one core wait for another, the other one posts and this one awaits. All instructions are
// added in one order, in which each can run behind those before it: so nobody waits for ever.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "simulator/binary/binary.h"
#include "simulator/config/configuration.h"
#include "simulator/isa/codec.h"

namespace npu_sim {

namespace npu = candela::npu;

/// Bytes of a memory, or rows of the accumulators, that an instruction reads or writes.
struct Access {
  /// Region r of DRAM: kRegions + r. The payload of a constant is nowhere until a copy asks for it.
  static constexpr int kPayload = -1, kScratchpad = 0, kAccumulators = 1, kRegions = 2;
  /// Instructions of the Program, by number: the parts of one read it, who waits for all of them
  /// writes it.
  static constexpr int kInstrs = -2;
  int memory = kScratchpad;
  int64_t begin = 0, end = 0;
  bool write = false;
};

/// What cannot be compiled, and why (CDL_REASON_*).
struct Refusal {
  uint16_t reason;
  std::string text;
};

/// An instruction for one engine; fields by npu::field.
npu::Insn insnFor(npu::Op op, npu::Engine engine);

class Stream {
public:
  explicit Stream(size_t cores)
      : cores_(cores), known_(cores * kEngines), itemOf_(cores * kEngines), registers_(cores) {}

  /// What comes until the next call is this core's.
  void onCore(size_t core) { core_ = core; }
  /// What comes until the next call belongs to this instruction of the Program, of this node.
  void begin(uint32_t instr, const std::string& node);
  /// Adds an instruction behind all others. Throws Refusal where a field cannot hold a value.
  void add(npu::Insn insn, const std::vector<Access>& accesses);
  /// The register that holds the descriptor for the next add(); `second` stands behind it where the
  /// operation needs one.
  int64_t descriptor(npu::DescriptorKind kind, const npu::DescriptorValues& values,
                     const npu::DescriptorValues* second = nullptr);
  /// Ends the program: words and symbols; of each symbol the instruction, 0 at the end. Throws
  /// Refusal.
  void finish(npu::Binary& binary, std::vector<uint32_t>& instrOfSymbol);

private:
  static constexpr size_t kEngines = npu::kEngineCount;
  /// by slot, an engine of a core: how many of its instructions are done
  using Clock = std::vector<uint32_t>;

  /// An instruction that is to be encoded; what it waits for and signals are engines of its core.
  struct Item {
    npu::Insn insn;
    std::vector<uint8_t> waits, signals;
    std::vector<uint32_t> awaits; ///< items of other cores
    bool isAwaited = false;       ///< by another core
    uint16_t core = 0;
    uint32_t symbol = 0;
  };
  /// An instruction, by its place among those of its slot, counted from 1; 0: none.
  struct Place {
    uint32_t slot = 0;
    uint32_t place = 0;
  };
  /// A range with whom to wait for before it is used again.
  struct Use {
    int64_t end = 0;
    Place writer;
    std::vector<Place> readers; ///< the last of each slot
  };

  class Writer;

  std::map<int64_t, Use>::iterator cut(std::map<int64_t, Use>& uses, int64_t at);
  void need(const Access& access, const Place& own, Clock& needed);
  static void addReader(Use& use, const Place& reader);
  uint32_t symbol() const { return static_cast<uint32_t>(nodes_.empty() ? 0 : nodes_.size() - 1); }
  int64_t place(int first, int count, int step, const npu::DescriptorBits& bits,
                const npu::DescriptorBits* second);
  void set(int64_t reg, const npu::DescriptorBits& bits);

  std::vector<Item> items_;
  std::vector<std::string> nodes_; ///< by call of begin()
  std::vector<uint32_t> instrs_;
  /// by memory, and by core where each has its own
  std::map<std::pair<int, size_t>, std::map<int64_t, Use>> uses_;
  size_t cores_, core_ = 0;
  /// By slot, the clocks of its places one behind the other: what each is ordered behind.
  std::vector<std::vector<uint32_t>> known_;
  Clock needed_;                              ///< of the instruction that is added
  std::vector<std::vector<uint32_t>> itemOf_; ///< by slot and place

  struct Register {
    npu::DescriptorBits bits{};
    bool isSet = false;
    uint64_t used = 0;
  };
  std::vector<std::array<Register, npu::kDescriptors>> registers_; ///< by core
  uint64_t turn_ = 0;
};

} // namespace npu_sim
