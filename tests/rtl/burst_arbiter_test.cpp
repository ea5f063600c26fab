#include <gtest/gtest.h>

#include <array>
#include <deque>

#include "Vrtl_burst_arbiter.h"
#include "tests/rtl/bench.h"

namespace {
using namespace candela::rtl;

constexpr int kSeed = 20260112, kPorts = 4, kBurst = 32, kBeat = 16, kAddrBits = 40, kByteBits = 6;
/// Two loads, two stores.
constexpr uint32_t kWriters = 0b1100;

/// What a channel offers: a request until it is taken, and of a store the data of those that were.
struct Channel {
  bool offers = false;
  uint64_t address = 0;
  /// requests of others that went before since it offers this one
  int bytes = 0, others = 0;
  /// a number that stands in the data, and whether it is the last
  std::deque<std::pair<uint64_t, bool>> beats;
  bool puts = false;
};

TEST(BurstArbiter, TakesTurnsAndKeepsDataWithItsRequests) {
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Bench<Vrtl_burst_arbiter> bench(kSeed);
  Dice dice(kSeed);
  std::array<Channel, kPorts> channels;
  std::deque<std::pair<int, uint64_t>> order; // of the beats of stores: port and number
  uint64_t number = 0, requests = 0, beats = 0;
  int held = -1, blocked = 0, most = 0;
  bench->req_write_i = kWriters;
  for (int i = 0; i < 30000; ++i) {
    // Memories that take requests at once, and rarely; data that is slower than requests, and
    // faster.
    const int ready = i / 1000 % 2 ? 90 : 30, putReady = i / 3000 % 2 ? 90 : 20;
    bench->req_valid_i = bench->put_valid_i = bench->put_last_i = 0;
    for (int p = 0; p < kPorts; ++p) {
      Channel& c = channels[static_cast<size_t>(p)];
      if (!c.offers && dice.chance(60))
        c = {true,
             static_cast<uint64_t>(dice.of(0, (int64_t{1} << kAddrBits) - 1)),
             static_cast<int>(dice.of(1, kBurst)),
             0,
             std::move(c.beats),
             c.puts};
      c.puts = !c.beats.empty() && (c.puts || dice.chance(70));
      bench->req_valid_i |= static_cast<uint8_t>(c.offers << p);
      setBits(bench->req_addr_i, p * kAddrBits, kAddrBits, c.address);
      setBits(bench->req_bytes_i, p * kByteBits, kByteBits, static_cast<uint64_t>(c.bytes));
      if (!c.puts) continue;
      bench->put_valid_i |= static_cast<uint8_t>(1 << p);
      bench->put_last_i |= static_cast<uint8_t>(c.beats.front().second << p);
      setBits(bench->put_bytes_i, p * kBeat, kBeat, c.beats.front().first);
      setBits(bench->put_data_i, p * kBeat * 8, 64, c.beats.front().first);
    }
    bench->req_ready_i = dice.chance(ready), bench->put_ready_i = dice.chance(putReady);
    const auto dataTag = static_cast<uint8_t>(dice.of(0, kPorts - 1)),
               answerTag = static_cast<uint8_t>(dice.of(0, kPorts - 1));
    bench->data_valid_i = dice.chance(50), bench->data_tag_i = dataTag;
    bench->answer_valid_i = dice.chance(50), bench->answer_tag_i = answerTag;
    bench->data_ready_i = static_cast<uint8_t>(dice.of(0, 15)),
    bench->answer_ready_i = static_cast<uint8_t>(dice.of(0, 15));
    bench.settle();

    ASSERT_EQ(bench->data_valid_o, bench->data_valid_i << dataTag);
    ASSERT_EQ(bench->data_ready_o, bench->data_ready_i >> dataTag & 1);
    ASSERT_EQ(bench->answer_valid_o, bench->answer_valid_i << answerTag);
    ASSERT_EQ(bench->answer_ready_o, bench->answer_ready_i >> answerTag & 1);
    const bool reads = (bench->req_valid_i & ~kWriters) != 0;
    ASSERT_TRUE(bench->req_valid_o || !reads) << "a read waits for nothing, cycle " << i;
    blocked += bench->req_valid_i != 0 && !bench->req_valid_o;
    uint32_t taken = 0;
    if (bench->req_valid_o) {
      const int tag = bench->req_tag_o;
      Channel& c = channels[static_cast<size_t>(tag)];
      ASSERT_TRUE(c.offers && (held < 0 || held == tag)) << "cycle " << i;
      ASSERT_EQ(bench->req_addr_o, c.address);
      ASSERT_EQ(bench->req_bytes_o, c.bytes);
      ASSERT_EQ(bench->req_write_o, kWriters >> tag & 1);
      held = bench->req_ready_i ? -1 : tag;
      if (bench->req_ready_i) {
        taken = 1u << tag;
        c.offers = false;
        ++requests;
        for (Channel& other : channels) other.others += other.offers;
        most = std::max(most, kWriters >> tag & 1 ? 0 : c.others);
        for (int beat = 0, count = (c.bytes + kBeat - 1) / kBeat;
             beat < count && kWriters >> tag & 1; ++beat) {
          number = (number + 1) & 0xffff;
          c.beats.push_back({number, beat == count - 1});
          order.push_back({tag, number});
        }
      }
    }
    ASSERT_EQ(bench->req_ready_o, taken) << "cycle " << i;
    uint32_t put = 0;
    if (bench->put_valid_o && bench->put_ready_i) {
      ASSERT_FALSE(order.empty());
      const auto [port, value] = order.front();
      order.pop_front();
      put = 1u << port;
      Channel& c = channels[static_cast<size_t>(port)];
      ASSERT_TRUE(c.puts);
      ASSERT_EQ(c.beats.front().first, value);
      ASSERT_EQ(bench->put_bytes_o, value);
      ASSERT_EQ(getBits(bench->put_data_o, 0, 64), value);
      ASSERT_EQ(bench->put_last_o, c.beats.front().second);
      c.beats.pop_front();
      c.puts = false;
      ++beats;
    }
    ASSERT_EQ(bench->put_ready_o & bench->put_valid_i, put) << "cycle " << i;
    bench.edge();
  }
  EXPECT_LT(most, kPorts) << "requests before a load's";
  EXPECT_TRUE(requests > 10000 && beats > 3000 && blocked > 100)
      << requests << ", " << beats << " and " << blocked << ": the draws were too tame, seed "
      << kSeed;
}

} // namespace
