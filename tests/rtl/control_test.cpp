#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <vector>

#include "Vrtl_control.h"
#include "tests/rtl/bench.h"
#include "tests/rtl/model.h"

namespace {
using namespace candela;
using namespace candela::rtl;

constexpr int kSeed = 20260109, kEngines = 12;

npu::Word wordOf(const npu::Insn& insn) {
  const npu::Result<npu::Word> word = npu::encode(insn);
  if (!word) throw std::invalid_argument(word.message());
  return *word;
}

/// What an engine's queue is to get.
struct Expected {
  int engine;
  npu::Word word;
  npu::DescriptorBits d, second;
};

/// A program, and what it sends when it is walked as the manual says.
struct Program {
  std::vector<npu::Insn> insns;
  std::vector<Expected> sends;
  int64_t steps = 0, own = 0, taken = 0, signalled = 0; ///< tokens of its own instructions

  npu::Insn& add(std::string_view op, const Fields& fields) {
    const npu::OpInfo& info = *npu::opInfo(op);
    npu::Insn insn;
    insn.op = info.op;
    insn.engine = static_cast<uint8_t>(__builtin_ctz(info.engines));
    setFields(info.fields, fields, insn.values);
    insns.push_back(insn);
    return insns.back();
  }

  void randomBlock(Dice& dice, int depth) {
    for (int64_t i = dice.of(1, 4); i > 0; --i) {
      if (depth < 4 && dice.chance(25)) {
        const size_t at = insns.size();
        add("loop", {{"count", dice.of(1, 3)}});
        randomBlock(dice, depth + 1);
        insns[at].values[npu::field::loop::kLength] = static_cast<int64_t>(insns.size() - at - 1);
        continue;
      }
      switch (dice.of(0, 5)) {
      case 0: add("movi", {{"x", dice.of(1, 15)}, {"value", dice.of(0, 500)}}); break;
      case 1: add("addi", {{"x", dice.of(1, 15)}, {"value", dice.of(0, 20)}}); break;
      case 2:
        add("setd", {{"d", dice.of(0, 15)},
                     {"word", dice.of(0, 3)},
                     {"value", dice.of(INT64_MIN / 4, INT64_MAX / 4)}});
        break;
      case 3: add("fence", {{"mask", 2 * dice.of(0, 0x7ff)}}); break;
      default: randomWork(dice);
      }
      npu::Insn& last = insns.back();
      if (last.engine != 0 || !dice.chance(30)) continue;
      last.waitSemaphore = static_cast<uint8_t>(dice.of(0, 31)),
      last.waitCount = static_cast<uint8_t>(dice.of(1, 7));
      last.signalSemaphore = static_cast<uint8_t>(dice.of(0, 31)),
      last.signalCount = static_cast<uint8_t>(dice.of(1, 7));
    }
  }
  void randomWork(Dice& dice) {
    static constexpr std::string_view kOps[] = {
        "load",    "store",   "copy",     "fill",    "ldw",    "mm",      "conv",  "dwconv",
        "requant", "accload", "accstore", "vbinary", "vunary", "vreduce", "vpool", "nop"};
    const npu::OpInfo& info =
        *npu::opInfo(kOps[static_cast<size_t>(dice.of(0, std::size(kOps) - 1))]);
    npu::Insn& insn = add(info.name, {});
    do {
      insn.engine = static_cast<uint8_t>(dice.of(1, kEngines - 1));
    } while (!(info.engines >> insn.engine & 1));
    insn.signalCount = static_cast<uint8_t>(dice.of(0, 7));
    if (insn.signalCount) insn.signalSemaphore = static_cast<uint8_t>(dice.of(0, 31));
    for (size_t i = 0; i < info.fields.size(); ++i) {
      const npu::FieldInfo& field = info.fields[i];
      const bool isAddress = field.kind == npu::FieldKind::kScratchpad ||
                             field.kind == npu::FieldKind::kFar ||
                             field.kind == npu::FieldKind::kAcc;
      if (isAddress) insn.values[i] = dice.of(0, 40000);
      if (field.kind == npu::FieldKind::kIndex || field.kind == npu::FieldKind::kDescriptor)
        insn.values[i] = dice.of(0, 15);
    }
  }

  /// Walks it from `pc` to before `end`.
  void walk(size_t pc, size_t end, std::array<int64_t, 16>& x,
            std::array<npu::DescriptorBits, 16>& d) {
    for (; pc < end; ++pc) {
      const npu::Insn& insn = insns[pc];
      const npu::OpInfo& info = *npu::opInfo(static_cast<uint64_t>(insn.op));
      const auto& v = insn.values;
      ++steps;
      if (insn.engine != 0) {
        Expected e{insn.engine, {}, {}, {}};
        npu::Insn resolved = insn;
        int descriptors = 0;
        int64_t last = 0;
        for (size_t i = 0; i < info.fields.size(); ++i) {
          if (info.fields[i].kind == npu::FieldKind::kDescriptor) {
            last = v[i];
            (descriptors++ ? e.second : e.d) = d[static_cast<size_t>(v[i])];
          }
          if (info.fields[i].kind != npu::FieldKind::kIndex) continue;
          // The register of an address stands behind it in the table.
          resolved.values[i - 1] += x[static_cast<size_t>(v[i])];
          resolved.values[i] = 0;
        }
        if (info.second >= 0 && descriptors == 1)
          e.second = d[static_cast<size_t>((last + 1) % 16)];
        e.word = wordOf(resolved);
        sends.push_back(e);
        continue;
      }
      ++own;
      taken += insn.waitCount, signalled += insn.signalCount;
      switch (insn.op) {
      case npu::Op::kLoop: {
        const size_t length = static_cast<size_t>(v[npu::field::loop::kLength]);
        for (int64_t i = 0; i < v[npu::field::loop::kCount]; ++i)
          walk(pc + 1, pc + 1 + length, x, d);
        pc += length;
        break;
      }
      case npu::Op::kMovi:
        x[static_cast<size_t>(v[npu::field::movi::kX])] = v[npu::field::movi::kValue];
        break;
      case npu::Op::kAddi:
        x[static_cast<size_t>(v[npu::field::addi::kX])] += v[npu::field::addi::kValue];
        break;
      case npu::Op::kSetd:
        d[static_cast<size_t>(v[npu::field::setd::kD])]
         [static_cast<size_t>(v[npu::field::setd::kWord])] =
             static_cast<uint64_t>(v[npu::field::setd::kValue]);
        break;
      default: break;
      }
    }
  }
};

struct Control {
  explicit Control(int seed) : bench(seed), dice(static_cast<uint32_t>(seed)) {
    bench->start_i = 0;
  }

  /// Runs words; `ready` of 100 fetches, sends and engines go on in a cycle. Returns the cycles
  /// from start to the end, -1 if it hangs.
  int64_t run(const std::vector<npu::Word>& words, const std::vector<Expected>* sends, int ready) {
    bench->start_i = 1, bench->words_i = static_cast<uint32_t>(words.size());
    const int64_t from = bench.cycle;
    bool came = false;
    uint32_t index = 0;
    size_t sent = 0;
    own = taken = signalled = 0;
    std::array<int, kEngines> busy{};
    for (; bench.cycle < from + 100000; bench->start_i = 0) {
      for (int i = 0; i < 4; ++i) {
        const npu::Word word = came ? words.at(index) : npu::Word{};
        bench->fetch_word_i[static_cast<size_t>(i)] =
            came ? static_cast<uint32_t>((i < 2 ? word.low : word.high) >> (32 * (i % 2)))
                 : static_cast<uint32_t>(dice.engine());
      }
      bench->fetch_ready_i = dice.chance(ready), bench->take_ready_i = dice.chance(ready);
      bench->send_ready_i = bench->idle_i = 0;
      for (int e = 0; e < kEngines; ++e) {
        bench->send_ready_i |= uint32_t{dice.chance(ready)} << e;
        bench->idle_i |= uint32_t{busy[static_cast<size_t>(e)] == 0} << e;
        if (busy[static_cast<size_t>(e)] && dice.chance(50)) --busy[static_cast<size_t>(e)];
      }
      bench.settle();
      if (bench.cycle > from && !bench->running_o) {
        if (sends) {
          EXPECT_EQ(sent, sends->size());
        }
        return bench.cycle - from;
      }
      if (bench->send_valid_o & bench->send_ready_i) {
        const int engine = __builtin_ctz(bench->send_valid_o);
        if (!sends || sent == sends->size()) {
          ADD_FAILURE() << "one send too many";
          return -1;
        }
        const Expected& e = (*sends)[sent];
        const auto same = [&](auto& port, std::span<const uint64_t> bits) {
          for (size_t i = 0; i < bits.size(); ++i)
            if (getBits(port, static_cast<int>(64 * i), 64) != bits[i]) return false;
          return true;
        };
        EXPECT_EQ(bench->send_valid_o, 1u << e.engine) << "send " << sent;
        EXPECT_TRUE(same(bench->send_word_o, std::array{e.word.low, e.word.high}))
            << "word of send " << sent;
        EXPECT_TRUE(same(bench->send_desc_o, e.d) || e.d == npu::DescriptorBits{})
            << "descriptor of send " << sent;
        EXPECT_TRUE(same(bench->send_second_o, e.second) || e.second == npu::DescriptorBits{})
            << "second one of send " << sent;
        if (testing::Test::HasFailure()) return -1;
        if (ready < 100) busy[static_cast<size_t>(engine)] = static_cast<int>(dice.of(1, 5));
        ++sent;
      }
      if (bench->take_valid_o && bench->take_ready_i) taken += bench->take_count_o;
      if (bench->signal_valid_o) signalled += bench->signal_count_o;
      if (bench->retire_o) {
        ++own;
        const auto op = static_cast<npu::Op>(words.at(bench->pc_o).low & 0xff);
        const auto mask = static_cast<uint32_t>(words[bench->pc_o].low >> 32 & 0xffe);
        if (op == npu::Op::kFence) {
          EXPECT_EQ(mask & ~bench->idle_i, 0u) << "a fence did not wait";
        }
        if (op == npu::Op::kHalt) {
          EXPECT_EQ(bench->idle_i | 1u, 0xfffu) << "halt did not wait";
        }
      }
      came = bench->fetch_valid_o && bench->fetch_ready_i, index = bench->fetch_index_o;
      bench.edge();
    }
    return -1;
  }

  Bench<Vrtl_control> bench;
  Dice dice;
  int64_t own = 0, taken = 0, signalled = 0;
};

TEST(Control, SendsWhatTheProgramSays) {
  Control control(kSeed);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(fmt::format("seed {}, program {}", kSeed, round));
    Program p;
    // All descriptors have known bits before they are used.
    for (int d = 0; d < 16; ++d)
      for (int word = 0; word < 4; ++word)
        p.add("setd", {{"d", d}, {"word", word}, {"value", control.dice.of(1, INT64_MAX / 4)}});
    p.randomBlock(control.dice, 0);
    p.add("halt", {});
    std::array<int64_t, 16> x{};
    std::array<npu::DescriptorBits, 16> d{};
    p.walk(0, p.insns.size(), x, d);
    std::vector<npu::Word> words;
    for (const npu::Insn& insn : p.insns) words.push_back(wordOf(insn));
    const int ready = round % 2 ? 100 : static_cast<int>(control.dice.of(20, 95));
    const int64_t cycles = control.run(words, &p.sends, ready);
    ASSERT_GE(cycles, 0) << "it hangs";
    EXPECT_TRUE(control.bench->halted_o && !control.bench->fault_o);
    EXPECT_EQ(control.own, p.own);
    EXPECT_EQ(control.taken, p.taken);
    EXPECT_EQ(control.signalled, p.signalled);
    // One word in each cycle, behind one of the start and one of the first fetch.
    if (ready == 100) {
      EXPECT_EQ(cycles, p.steps + 2);
    }
    if (HasFailure()) return;
  }
}

TEST(Control, StopsAtWordsThatCannotBe) {
  const auto word = [](std::string_view op, const Fields& fields) {
    Program p;
    return wordOf(p.add(op, fields));
  };
  const npu::Word halt = word("halt", {}), loop = word("loop", {{"count", 2}, {"length", 4}}),
                  nop = word("nop", {});
  npu::Word elsewhere = word("vreduce", {});
  elsewhere.low ^= uint64_t{0x2} << 8; // engine 9, matrix
  const std::vector<std::vector<npu::Word>> programs = {
      {npu::Word{0xff, 0}, halt},                  // no opcode
      {elsewhere, halt},                           // an engine that cannot run it
      {nop},                                       // the end without halt
      {loop, nop, halt},                           // a loop beyond the end
      {loop, loop, nop, nop, nop, nop, nop, halt}, // a loop beyond the one that it lies in
  };
  for (size_t i = 0; i < programs.size(); ++i) {
    Control control(kSeed + 1);
    EXPECT_GE(control.run(programs[i], nullptr, 100), 0) << "program " << i;
    EXPECT_TRUE(control.bench->fault_o && !control.bench->halted_o) << "program " << i;
  }
}

} // namespace
