#include "core/runtime/requests/timeline.h"

#include <gtest/gtest.h>

#include <thread>

namespace candela::runtime::requests {
namespace {

constexpr Clock::time_point kForever = Clock::time_point::max();

TEST(Timeline, RisesAndNeverFalls) {
  Timeline timeline;
  EXPECT_EQ(timeline.value(), 0u);
  EXPECT_TRUE(timeline.signal(3));
  EXPECT_EQ(timeline.value(), 3u);
  for (const uint64_t value : {3u, 2u, 0u})
    EXPECT_EQ(timeline.signal(value).code(), Code::invalid_argument) << value;
  EXPECT_EQ(timeline.value(), 3u);
}

TEST(Timeline, WaitsForWhatAnotherThreadSignals) {
  Timeline timeline;
  std::thread signals([&] { EXPECT_TRUE(timeline.signal(5)); });
  EXPECT_TRUE(timeline.wait(4, kForever));
  EXPECT_TRUE(timeline.wait(5, kForever));
  signals.join();
  EXPECT_EQ(timeline.wait(6, Clock::now()).code(), Code::timeout);
}

TEST(Timeline, CallsEachWaiterOnceInTheOrderOfTheirComing) {
  Timeline timeline;
  std::string calls;
  for (const auto& [value, name] : {std::pair(2, 'a'), std::pair(1, 'b'), std::pair(2, 'c')})
    timeline.whenReached(static_cast<uint64_t>(value), [&calls, name = name](const Status& status) {
      EXPECT_TRUE(status);
      calls += name;
    });
  EXPECT_TRUE(timeline.signal(1));
  EXPECT_EQ(calls, "b");
  EXPECT_TRUE(timeline.signal(7));
  EXPECT_EQ(calls, "bac");
  timeline.whenReached(7, [&](const Status&) { calls += 'd'; });
  EXPECT_EQ(calls, "bacd");
}

TEST(Timeline, TellsItsFailureToWhoeverWaitsForMore) {
  Timeline timeline;
  EXPECT_TRUE(timeline.signal(1));
  Status told;
  timeline.whenReached(2, [&](const Status& status) { told = status; });
  timeline.fail(Status(Code::device_lost, "acme is gone"));
  timeline.fail(Status(Code::internal, "a second one"));
  EXPECT_EQ(told.code(), Code::device_lost);
  EXPECT_EQ(timeline.wait(2, kForever).message(), "acme is gone");
  EXPECT_TRUE(timeline.wait(1, kForever)) << "what was reached stays reached";
}

} // namespace
} // namespace candela::runtime::requests
