#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "Vrtl_dma_shared.h"
#include "tests/rtl/ports.h"
#include "tests/rtl/transfers.h"

namespace {
using namespace candela;
using namespace candela::rtl;

constexpr int kSeed = 20260113, kPorts = 4, kWidth = 8, kBeat = 16, kBytes = 65536,
              kShare = kBytes / kPorts;
constexpr int kWordBits = 8 * kWidth, kAddrBits = 25;

/// Channels that work at the same time, each in its own quarter of the scratchpad and of the
/// region.
struct Channels {
  explicit Channels(int seed)
      : bench(seed), dice(static_cast<uint32_t>(seed)),
        model(configurationOf(fmt::format(
            "name = \"bench\"\n[scratchpad]\nbytes = {}\nbank_width = {}\n", kBytes, kWidth))),
        near(kBytes), far(kBytes), modelFar(kBytes) {
    bench->insn_valid_i = bench->data_valid_i = bench->answer_valid_i = 0;
    bench->base_i = kBase;
    for (uint8_t& byte : near) byte = static_cast<uint8_t>(dice.of(0, 255));
    for (uint8_t& byte : far) byte = static_cast<uint8_t>(dice.of(0, 255));
    std::copy(near.begin(), near.end(), model.memory.scratchpad());
    modelFar = far;
    model.dram.regions = regionsOf(kBytes);
    model.dram.bound[kRegion] = std::as_writable_bytes(std::span(modelFar));
  }

  /// So many transfers of each, one behind the other. False if it hangs.
  bool round(int count) {
    std::array<int, kPorts> left;
    left.fill(count);
    std::array<bool, kPorts> runs{};
    std::array<ReadPort, kPorts> reads{};
    std::array<std::deque<Burst>, kPorts> asked; // reads of each, and writes whose data has come
    std::deque<std::pair<int, Burst>> written;   // whose data is to come, in the order of requests
    const int ready = static_cast<int>(dice.of(30, 100));
    for (int64_t now = 0; now < 100000; ++now) {
      bench->insn_valid_i = 0;
      // One is sent a transfer, which the model does at once: nobody else sees its bytes.
      const auto next = static_cast<size_t>(dice.of(0, kPorts - 1));
      const bool sends = !runs[next] && left[next] > 0;
      if (sends) send(static_cast<int>(next));
      bench->req_ready_i = dice.chance(ready), bench->data_ready_i = dice.chance(ready);
      bench->read_ready_i = static_cast<uint8_t>(dice.of(0, 15)),
      bench->write_ready_i = static_cast<uint8_t>(dice.of(0, 3));
      for (size_t p = 0; p < kPorts; ++p) {
        uint64_t word = 0;
        reads[p].answer(near, kWidth, dice, word);
        setBits(bench->read_data_i, static_cast<int>(p) * kWordBits, kWordBits, word);
      }
      const auto reader = static_cast<size_t>(dice.of(0, 1)),
                 writer = static_cast<size_t>(dice.of(2, 3));
      bench->data_valid_i = !asked[reader].empty() && asked[reader].front().due <= now;
      bench->data_tag_i = static_cast<uint8_t>(reader);
      getBeat(bench->data_valid_i ? asked[reader].front() : Burst{0, 0, 0, kBeat}, far, dice,
              bench->data_i);
      bench->answer_valid_i = !asked[writer].empty() && asked[writer].front().due <= now;
      bench->answer_tag_i = static_cast<uint8_t>(writer);
      bench.settle();

      for (size_t p = 0; p < kPorts; ++p) {
        const auto bit = [p](uint32_t bits) { return (bits >> p & 1) != 0; };
        if (bit(bench->done_o)) {
          EXPECT_TRUE(runs[p] && asked[p].empty());
          runs[p] = false;
        }
        reads[p] = {bit(bench->read_valid_o & bench->read_ready_i),
                    static_cast<uint32_t>(
                        getBits(bench->read_addr_o, static_cast<int>(p) * kAddrBits, kAddrBits))};
        if (p < 2 && bit(bench->write_valid_o & bench->write_ready_i)) {
          const auto at = static_cast<uint32_t>(
              getBits(bench->write_addr_o, static_cast<int>(p) * kAddrBits, kAddrBits));
          EXPECT_TRUE(write(
              near, at, kWidth, getBits(bench->write_bytes_o, static_cast<int>(p) * kWidth, kWidth),
              getBits(bench->write_data_o, static_cast<int>(p) * kWordBits, kWordBits)));
        }
      }
      if (sends) {
        EXPECT_TRUE(bench->insn_ready_o >> next & 1);
        runs[next] = true;
        --left[next];
      }
      most = std::max(most, runs[0] + runs[1] + runs[2] + runs[3]);
      if (bench->data_valid_i) {
        EXPECT_TRUE(bench->data_ready_o);
        Burst& burst = asked[reader].front();
        burst.moved += burst.nextBeat();
        if (burst.beatsLeft() == 0) asked[reader].pop_front();
      }
      if (bench->answer_valid_i) asked[writer].pop_front();
      if (bench->data_valid_o && bench->data_ready_i) {
        if (written.empty()) return false;
        auto& [port, burst] = written.front();
        EXPECT_TRUE(putBeat(burst, far, bench->data_bytes_o, bench->data_o, bench->data_last_o))
            << "at " << burst.at;
        if (burst.beatsLeft() == 0) {
          asked[static_cast<size_t>(port)].push_back(burst);
          written.pop_front();
        }
      }
      if (bench->req_valid_o && bench->req_ready_i) {
        const Burst burst{static_cast<int64_t>(bench->req_addr_o) - kBase, bench->req_bytes_o,
                          now + dice.of(1, 40), kBeat};
        const size_t port = bench->req_tag_o;
        EXPECT_EQ(burst.at / kShare, port) << "not its quarter";
        EXPECT_EQ(bench->req_write_o, port >= 2);
        if (bench->req_write_o)
          written.push_back({static_cast<int>(port), burst});
        else
          asked[port].push_back(burst);
      }
      bench.edge();
      if (left == std::array<int, kPorts>{} && runs == std::array<bool, kPorts>{}) return true;
    }
    return false;
  }
  void send(int port) {
    const int64_t draw = dice.of(0, 9);
    const char* const op = port >= 2 ? "store" : draw < 7 ? "load" : draw < 9 ? "copy" : "fill";
    const Case c = randomTransfer(dice, op, {port * kShare, port * kShare, kShare});
    model.run(c.sent);
    bench->insn_valid_i = static_cast<uint8_t>(1 << port);
    for (int i = 0; i < 2; ++i)
      setBits(bench->word_i, 64 * i, 64, i ? c.sent.word.high : c.sent.word.low);
    for (int i = 0; i < 4; ++i)
      setBits(bench->desc_i, 64 * i, 64, c.sent.d[static_cast<size_t>(i)]);
  }

  Bench<Vrtl_dma_shared> bench;
  Dice dice;
  Model model;
  std::vector<uint8_t> near, far, modelFar;
  int most = 0; ///< channels that worked at a time
};

TEST(DmaShared, ChannelsBehindTheArbiterMoveTheirOwnBytes) {
  Channels channels(kSeed);
  for (int i = 0; i < 40; ++i) {
    SCOPED_TRACE(fmt::format("seed {}, round {}", kSeed, i));
    ASSERT_TRUE(channels.round(6)) << "it hangs";
    ASSERT_TRUE(
        std::equal(channels.near.begin(), channels.near.end(), channels.model.memory.scratchpad()));
    ASSERT_EQ(channels.far, channels.modelFar);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_EQ(channels.most, kPorts) << "the draws were too tame, seed " << kSeed;
}

} // namespace
