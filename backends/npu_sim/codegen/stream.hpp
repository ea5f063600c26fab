// The instruction stream: instructions in order with the bytes that each touches, and the
// semaphores that keep this order where bytes are shared. Engines run side by side, each its own
// instructions in order. So what is done when an instruction begins is a vector clock (Mattern,
// "Virtual time and global states of distributed systems", 1989): for each engine, how many of its
// instructions. An instruction waits for another engine only where it needs more of that than is
// known by the waits before it, and with a wait it comes to know all that the other one knew.
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
  static constexpr int kEngines = npu::kEngineCount;
  /// by engine: how many of its instructions are done
  using Clock = std::array<uint32_t, kEngines>;

  /// An instruction that is to be encoded; what it waits for and signals are engines.
  struct Item {
    npu::Insn insn;
    std::vector<uint8_t> waits, signals;
    uint32_t symbol = 0;
  };
  /// A range with whom to wait for before it is used again.
  struct Use {
    int64_t end = 0;
    uint32_t writer = 0; ///< its place among those of its engine, counted from 1; 0: none
    uint8_t engine = 0;  ///< of the writer
    Clock readers{};
  };

  class Writer;

  std::map<int64_t, Use>::iterator cut(std::map<int64_t, Use>& uses, int64_t at);
  void need(const Access& access, uint8_t engine, uint32_t place, Clock& needed);
  int64_t place(int first, int count, int step, const npu::DescriptorBits& bits,
                const npu::DescriptorBits* second);
  void set(int64_t reg, const npu::DescriptorBits& bits);

  std::vector<Item> items_;
  std::vector<std::string> nodes_; ///< by call of begin()
  std::vector<uint32_t> instrs_;
  std::map<int, std::map<int64_t, Use>> uses_;
  /// by engine and place: what it is ordered behind
  std::array<std::vector<Clock>, kEngines> known_{};
  std::array<std::vector<uint32_t>, kEngines> itemOf_{}; ///< by engine and place

  struct Register {
    npu::DescriptorBits bits{};
    bool isSet = false;
    uint64_t used = 0;
  };
  std::array<Register, npu::kDescriptors> registers_{};
  uint64_t turn_ = 0;
};

} // namespace npu_sim
