#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <type_traits>
#include <vector>

#include "Vrtl_dma.h"
#include "Vrtl_dma_beats.h"
#include "Vrtl_dma_gem16.h"
#include "Vrtl_dma_halves.h"
#include "Vrtl_dma_narrow.h"
#include "Vrtl_dma_words.h"
#include "simulator/timing/schedule.h"
#include "tests/rtl/bench.h"
#include "tests/rtl/model.h"
#include "tests/rtl/ports.h"
#include "tests/rtl/transfers.h"

namespace {
using namespace candela;
using namespace candela::rtl;

constexpr int kSeed = 20260111, kScratchpad = 65536, kFar = 65536;
constexpr Area kAll{0, 0, kScratchpad};

/// What the class of a parametrisation stands for.
struct Shape {
  int width, burst, beat, outstanding;
  const char* rest; ///< of the configuration: clock and memory
};
template <typename Module> struct ShapeOf;
template <> struct ShapeOf<Vrtl_dma> {
  static constexpr Shape kShape{
      8, 32, 32, 4, "clock_mhz = 800\n[dram]\ntype = \"LPDDR4-3200\"\nwidth_bits = 16\n"};
};
template <> struct ShapeOf<Vrtl_dma_gem16> {
  static constexpr Shape kShape{16, 64, 64, 16, "[dram]\ntype = \"DDR4-2400\"\nwidth_bits = 64\n"};
};
template <> struct ShapeOf<Vrtl_dma_words> {
  static constexpr Shape kShape{32, 16, 16, 3, "[dram]\ntype = \"LPDDR5-6400\"\nwidth_bits = 32\n"};
};
template <> struct ShapeOf<Vrtl_dma_beats> {
  static constexpr Shape kShape{
      8, 64, 16, 1, "clock_mhz = 700\n[dram]\ntype = \"DDR3-2133\"\nwidth_bits = 128\n"};
};
template <> struct ShapeOf<Vrtl_dma_narrow> {
  static constexpr Shape kShape{
      32, 256, 4, 8, "clock_mhz = 1500\n[dram]\ntype = \"LPDDR4-3200\"\nwidth_bits = 64\n"};
};
template <> struct ShapeOf<Vrtl_dma_halves> {
  static constexpr Shape kShape{64, 64, 32, 16, "[dram]\ntype = \"DDR4-3200\"\nwidth_bits = 64\n"};
};

npu::Configuration configurationOf(const Shape& s) {
  const std::string_view rest = s.rest;
  const size_t sections = rest.find('[');
  return rtl::configurationOf(
      fmt::format("name = \"bench\"\n{}[scratchpad]\nbytes = {}\nbank_width = "
                  "{}\n[dma]\nburst_bytes = {}\nbeat_bytes = {}\noutstanding = {}\n{}",
                  rest.substr(0, sections), kScratchpad, s.width, s.burst, s.beat, s.outstanding,
                  rest.substr(sections)));
}

/// A transfer in the timing model, alone: four setd before it, and the program is fetched.
struct Alone {
  npu::Binary binary;
  int64_t start = 0, done = 0;
};
Alone alone(const npu::Configuration& c, const Sent& s) {
  Alone a;
  a.binary.regions = regionsOf(kFar);
  for (int word = 0; word < 4; ++word)
    a.binary.code.push_back(sent("setd",
                                 {{"d", 0},
                                  {"word", word},
                                  {"value", static_cast<int64_t>(s.d[static_cast<size_t>(word)])}},
                                 {})
                                .word);
  a.binary.code.push_back(s.word);
  a.binary.code.push_back(sent("halt", {}, {}).word);
  npu::ScheduleOptions options;
  options.onRetire = [&](const npu::InstructionTime& time) {
    if (time.op == s.insn.op) a.start = time.start, a.done = time.done;
  };
  const npu::Result<npu::TimeReport> report = npu::timeOf(c, a.binary, options);
  if (!report) throw std::runtime_error(report.message());
  return a;
}

template <typename Module> struct Channels {
  static constexpr Shape kShape = ShapeOf<Module>::kShape;

  explicit Channels(int seed)
      : bench(seed), dice(static_cast<uint32_t>(seed)), model(configurationOf(kShape)),
        near(kScratchpad), far(kFar), modelFar(kFar) {
    bench->insn_valid_i = bench->data_valid_i = bench->answer_valid_i = bench->store_i = 0;
    model.dram.regions = regionsOf(kFar);
    for (uint8_t& byte : near) byte = static_cast<uint8_t>(dice.of(0, 255));
    for (uint8_t& byte : far) byte = static_cast<uint8_t>(dice.of(0, 255));
    std::copy(near.begin(), near.end(), model.memory.scratchpad());
    modelFar = far;
    model.dram.bound[kRegion] = std::as_writable_bytes(std::span(modelFar));
  }

  /// Runs it on both sides. Isolated: every port is ready, and the memory of the timing model
  /// answers. Else `ready` of 100 offers are taken in their cycle, and the memory answers when it
  /// likes. Returns the cycles, -1 if it hangs.
  int64_t run(const Sent& s, int ready, const Alone* isolated) {
    model.run(s);
    const bool isStore = s.insn.op == npu::Op::kStore;
    const int64_t there = npu::valueOf(npu::Timing::kFabricLatency) / 2,
                  back = npu::valueOf(npu::Timing::kFabricLatency) - there;
    npu::Dram dram(model.configuration);
    if (isolated) {
      const int64_t line = std::max<int64_t>(kShape.burst, dram.granule());
      for (int64_t at = 0;
           at < static_cast<int64_t>(isolated->binary.code.size() * sizeof(npu::Word)); at += line)
        dram.access(there, static_cast<uint64_t>(kBase + kFar + at), line, false, 0);
    }
    const int64_t base = isolated ? kBase : kBase + (int64_t{0x5a} << 32);
    bench->insn_valid_i = 1, bench->store_i = isStore, bench->base_i = static_cast<uint64_t>(base);
    for (int i = 0; i < 4; ++i) {
      bench->word_i[static_cast<size_t>(i)] =
          static_cast<uint32_t>((i < 2 ? s.word.low : s.word.high) >> (32 * (i % 2)));
      setBits(bench->desc_i, 64 * i, 64, s.d[static_cast<size_t>(i)]);
    }
    bench.settle();
    EXPECT_TRUE(bench->insn_ready_o);
    const int64_t from = bench.cycle, limit = from + 400000;
    ReadPort read;
    std::deque<Burst> bursts; // under way, in the order of requests
    bool answered = false;
    for (; bench.cycle < limit; bench.edge(), bench->insn_valid_i = 0) {
      const int64_t now = (isolated ? isolated->start : 0) + bench.cycle - from;
      read.answer(near, kShape.width, dice, bench->read_data_i);
      bench->read_ready_i = dice.chance(ready), bench->write_ready_i = dice.chance(ready);
      bench->req_ready_i = dice.chance(ready), bench->data_ready_i = dice.chance(ready);
      // A burst's first beat comes in the cycle before the model has it, others in those behind;
      // data in the order of requests.
      bench->data_valid_i = !isStore && !bursts.empty() && now >= bursts.front().due &&
                            (isolated || dice.chance(ready));
      getBeat(bench->data_valid_i ? bursts.front() : Burst{0, 0, 0, kShape.beat}, far, dice,
              bench->data_i);
      // A store's answers: isolated in the order of requests.
      auto written = bursts.begin();
      while (written != bursts.end() && (written->moved < written->bytes || now < written->due))
        written = isolated ? bursts.end() : written + 1;
      answered = isStore && written != bursts.end() && (isolated || dice.chance(ready));
      bench->answer_valid_i = answered;
      bench.settle();
      EXPECT_FALSE(bench->idle_offers_o);
      if (bench->done_o && bench.cycle > from) {
        EXPECT_TRUE(bursts.empty()) << "it ends before the memory";
        bench->data_valid_i = bench->answer_valid_i = 0;
        return bench.cycle - from;
      }
      read = {bench->read_valid_o && bench->read_ready_i, bench->read_addr_o};
      if (bench->write_valid_o && bench->write_ready_i) {
        EXPECT_TRUE(write(near, bench->write_addr_o, kShape.width, bench->write_bytes_o,
                          bench->write_data_o))
            << bench->write_addr_o;
      }
      if (bench->data_valid_i) {
        EXPECT_TRUE(bench->data_ready_o);
        bursts.front().moved += bursts.front().nextBeat();
        if (bursts.front().beatsLeft() == 0) bursts.pop_front();
      }
      if (answered) bursts.erase(written);
      if (bench->data_valid_o && bench->data_ready_i) {
        const auto burst = std::find_if(bursts.begin(), bursts.end(),
                                        [](const Burst& b) { return b.moved < b.bytes; });
        EXPECT_TRUE(burst != bursts.end()) << "data that no request was for";
        if (burst == bursts.end()) return -1;
        EXPECT_TRUE(putBeat(*burst, far, bench->data_bytes_o, bench->data_o, bench->data_last_o))
            << "at " << burst->at;
        // The memory has a store's burst with its last beat: of one that is a single beat, with the
        // request, which is two cycles before.
        if (isolated && burst->beatsLeft() == 0)
          burst->due = dram.access(now - 2 + there, static_cast<uint64_t>(base + burst->at),
                                   burst->bytes, true, s.insn.engine) +
                       back - 1;
      }
      if (bench->req_valid_o && bench->req_ready_i) {
        const int64_t at = static_cast<int64_t>(bench->req_addr_o) - base,
                      bytes = bench->req_bytes_o;
        EXPECT_TRUE(at >= 0 && bytes > 0 && at + bytes <= kFar &&
                    at % kShape.burst + bytes <= kShape.burst)
            << "a burst of " << bytes << " at " << at;
        bursts.push_back({at, bytes, now + dice.of(1, 60), kShape.beat});
        EXPECT_LE(bursts.size(), static_cast<size_t>(kShape.outstanding));
        if (isolated && !isStore)
          bursts.back().due =
              dram.access(now + there, bench->req_addr_o, bytes, false, s.insn.engine) + back - 1;
      }
    }
    return -1;
  }

  void compare() {
    const auto same = [](const char* what, const std::vector<uint8_t>& mine,
                         const uint8_t* theirs) {
      const auto [at, other] = std::mismatch(mine.begin(), mine.end(), theirs);
      ASSERT_TRUE(at == mine.end()) << "byte " << at - mine.begin() << " of " << what << " is "
                                    << int{*at} << ", the model has " << int{*other};
    };
    same("the scratchpad", near, model.memory.scratchpad());
    same("the memory", far, modelFar.data());
  }

  Bench<Module> bench;
  Dice dice;
  Model model;
  std::vector<uint8_t> near, far; ///< scratchpad and region of the hardware
  std::vector<uint8_t> modelFar;
};

Case randomTransfer(Dice& dice) {
  const int64_t draw = dice.of(0, 99);
  return randomTransfer(dice,
                        draw < 45   ? "load"
                        : draw < 80 ? "store"
                        : draw < 93 ? "copy"
                                    : "fill",
                        kAll);
}

/// Corners by hand: all of the region at once, in each dimension; single bytes at the ends; much
/// padding; what repeats.
std::vector<Case> directed() {
  const auto box = [](int64_t run, std::array<int64_t, 3> lengths, std::array<int64_t, 3> strides) {
    return Box{run, lengths, strides};
  };
  const Fields most{{"pad_left", 15}, {"pad_right", 15}, {"pad_top", 15}, {"pad_bottom", 15}};
  std::vector<Case> cases;
  for (const char* op : {"load", "store"}) {
    const char* const side = op == std::string_view("load") ? "dst" : "src";
    for (const Box& all : {box(65536, {1, 1, 1}, {0, 0, 0}), box(1, {65536, 1, 1}, {1, 0, 0}),
                           box(1, {1, 65536, 1}, {0, 1, 0}), box(1, {1, 1, 65536}, {0, 0, 1}),
                           box(64, {64, 4, 4}, {64, 4096, 16384})})
      cases.push_back(caseOf(op, {{side, 0}, {"far", 0}}, all, all, {}));
    // Upside down, transposed, and one byte.
    cases.push_back(caseOf(op, {{side, 100}, {"far", 60000}}, box(96, {20, 10, 1}, {-96, -2000, 0}),
                           box(96, {20, 10, 1}, {96, 1920, 0}), {}));
    cases.push_back(caseOf(op, {{side, 7}, {"far", 11}}, box(1, {30, 20, 4}, {1, 30, 600}),
                           box(1, {30, 20, 4}, {20, 1, 600}), {}));
    cases.push_back(caseOf(op, {{side, kScratchpad - 1}, {"far", kFar - 1}},
                           box(1, {1, 1, 1}, {0, 0, 0}), box(1, {1, 1, 1}, {0, 0, 0}), {}));
  }
  cases.push_back(caseOf("store", {{"src", 5}, {"far", 3}, {"flip", 1}},
                         box(50, {40, 10, 1}, {50, 2000, 0}), box(50, {40, 10, 1}, {0, 0, 0}), {}));
  for (const int64_t stride : {3, 5})
    cases.push_back(caseOf("load", {{"dst", 1}, {"far", 40000}, {"fill", 77}, {"flip", 1}},
                           box(3, {20, 10, 2}, {3, 60, 0}),
                           box(3, {50, 40, 2}, {stride, 50 * stride, 2000 * stride}), most));
  for (const char* op : {"copy", "fill"})
    cases.push_back(caseOf(op, {{"dst", 30000}, {"fill", 200}}, box(17, {20, 10, 1}, {17, 340, 0}),
                           box(17, {50, 40, 1}, {17, 850, 0}), most));
  return cases;
}

template <typename Module> class Dma : public testing::Test {
protected:
  using Side = Channels<Module>;
  /// Runs it as the only one, and compares all bytes and the cycles with the models.
  void runAlone(Side& side, const Case& c, const std::string& which) {
    SCOPED_TRACE(fmt::format("seed {}, {}: {}", kSeed, which, c.text));
    const Alone expected = alone(side.model.configuration, c.sent);
    const int64_t cycles = side.run(c.sent, 100, &expected), want = expected.done - expected.start;
    ASSERT_GE(cycles, 0) << "it hangs";
    ASSERT_EQ(cycles, want);
    side.compare();
  }
};
using Modules = testing::Types<Vrtl_dma, Vrtl_dma_gem16, Vrtl_dma_words, Vrtl_dma_beats,
                               Vrtl_dma_halves, Vrtl_dma_narrow>;
TYPED_TEST_SUITE(Dma, Modules);

TYPED_TEST(Dma, TakesTheCyclesOfTheTimingModel) {
  Channels<TypeParam> side(kSeed);
  for (int done = 0; done < 400 && !testing::Test::HasFatalFailure(); ++done)
    this->runAlone(side, randomTransfer(side.dice), fmt::format("transfer {}", done));
}

TYPED_TEST(Dma, TakesTheCyclesOfTheTimingModelAtCorners) {
  Channels<TypeParam> side(kSeed);
  int done = 0;
  for (const Case& c : directed())
    if (!testing::Test::HasFatalFailure())
      this->runAlone(side, c, fmt::format("corner {}", done++));
}

TYPED_TEST(Dma, MovesTheSameWhenEverythingWaits) {
  Channels<TypeParam> side(kSeed + 1);
  for (int done = 0; done < 200; ++done) {
    const Case c = randomTransfer(side.dice);
    SCOPED_TRACE(fmt::format("seed {}, transfer {}: {}", kSeed + 1, done, c.text));
    ASSERT_GE(side.run(c.sent, static_cast<int>(side.dice.of(20, 95)), nullptr), 0) << "it hangs";
    side.compare();
    if (testing::Test::HasFatalFailure()) return;
  }
}

} // namespace
