// The tiers memory and queue find every fault of the shim, each by the cases that it belongs to.
#include "conformance/mutants/shim.h"

#include <gmock/gmock.h>

#include "conformance/mutants/soft_port.h"
#include "conformance/port.h"
#include "conformance/report/report.h"
#include "conformance/suite.h"

namespace candela::conformance {
namespace {

using Outcome = CaseResult::Outcome;

std::vector<CaseResult> resultsWith(const std::string& fault, const std::string& at = "0") {
  mutants::setShimBase(mutants::softQuery);
  runtime::plugin::registerStatic("shim", mutants::shimQuery);
  Selection selection;
  selection.size = Size::nightly;
  std::vector<CaseResult> results;
  for (const char* tier : {"memory", "queue"}) {
    const std::vector<Case> cases = findTier(tier)->list(selection).orAbort();
    for (const Case& one : cases) {
      // What leaks is slow to find, and nothing but `leak` and `none` is about it; threads that
      // wait for what a lost device will not signal end with their patience.
      if (fault != "leak" && fault != "none" && one.address.starts_with("memory:leak/")) continue;
      if (fault == "device_lost" && one.address.find("wait") != one.address.npos) continue;
      const mutants::ShimObjects before = mutants::shimObjects();
      {
        Port port("shim", {{"shim", fault}, {"shim_at", at}}); // a device of its own
        results.push_back(one.run(port));
        results.back().name = one.address;
      }
      // One case leaves a buffer behind, to see what becomes of the device.
      const bool isLeftOver = one.address == "memory:device/left_over";
      EXPECT_TRUE(isLeftOver || mutants::shimObjects() == before) << fault << ", " << one.address;
    }
  }
  return results;
}

TEST(Shim, WithoutAFaultIsRight) {
  const uint64_t calls = mutants::shimCalls();
  for (const CaseResult& result : resultsWith("none"))
    EXPECT_NE(result.outcome, Outcome::failed) << result.name << ": " << result.reason;
  EXPECT_GT(mutants::shimCalls(), calls + 1000);
}

struct Kill {
  const char* fault;
  /// each is failed by at least one case, with the word in its reason
  std::vector<const char*> queries;
  const char* word;
};
void PrintTo(const Kill& kill, std::ostream* out) { *out << kill.fault; }

class ShimFault : public testing::TestWithParam<Kill> {};

TEST_P(ShimFault, IsFound) {
  const std::vector<CaseResult> results = resultsWith(GetParam().fault);
  for (const char* query : GetParam().queries) {
    const auto finds = [&](const CaseResult& result) {
      return result.outcome == Outcome::failed && report::matchesQuery(result.name, query) &&
             result.reason.find(GetParam().word) != std::string::npos;
    };
    EXPECT_TRUE(std::ranges::any_of(results, finds)) << query;
  }
  if (!HasFailure()) return;
  for (const CaseResult& result : results)
    if (result.outcome == Outcome::failed)
      std::printf("%s: %s\n", result.name.c_str(), result.reason.c_str());
}

INSTANTIATE_TEST_SUITE_P(
    Faults, ShimFault,
    testing::Values(
        Kill{"out_of_memory",
             {"memory:create*", "memory:many/distinct", "queue:several/*"},
             "out_of_memory"},
        Kill{"timeout", {"queue:timeline/reached", "queue:order/*"}, "timeout"},
        Kill{"error", {"memory:*", "queue:*"}, "a fault was asked for"},
        Kill{"unknown_code", {"memory:*", "queue:*"}, "code 999"},
        Kill{"null_memory", {"memory:create*", "queue:order/*"}, "without memory"},
        Kill{"null_queue", {"queue:timeline/reached", "queue:order/*"}, "without a queue"},
        Kill{"late",
             {"memory:map/reads", "memory:map/stays", "queue:order/seen_by_others*",
              "queue:several/hand_over"},
             "expected"},
        Kill{"unordered",
             {"queue:order/copy_chain*", "queue:order/run_run_read*", "queue:order/write_reused*"},
             "expected"},
        Kill{
            "reversed", {"queue:order/write_write_read*", "queue:order/run_copy_run*"}, "expected"},
        Kill{"partial_write", {"memory:create*", "memory:guard/write*"}, "expected"},
        Kill{"partial_read", {"memory:create*", "memory:guard/read*"}, "expected"},
        Kill{"partial_copy",
             {"memory:guard/copy*", "memory:copy/apart", "queue:order/copy_chain*"},
             "expected"},
        Kill{"wait_lies",
             {"queue:timeline/unreached", "queue:timeline/unreached_at_once",
              "queue:several/own_timelines"},
             "succeeded"},
        Kill{"lost_code",
             {"memory:refused/*", "memory:out_of_memory/*", "queue:timeline/unreached"},
             "succeed"},
        Kill{"wrong_code",
             {"memory:refused/*", "memory:out_of_memory/*", "queue:timeline/unreached"},
             "internal"},
        Kill{"no_message",
             {"memory:refused/*", "memory:out_of_memory/*", "queue:after_error/*"},
             "without a message"},
        Kill{"long_message",
             {"memory:refused/*", "memory:out_of_memory/*", "queue:after_error/*"},
             "beyond its capacity"},
        Kill{"map_copy", {"memory:map/writes", "memory:map/stays"}, "expected"},
        Kill{"leak", {"memory:leak/touched", "memory:leak/small"}, "leak: "}),
    [](const auto& info) { return std::string(info.param.fault); });

/// Wherever the device is lost, a case ends, says so, and leaves nothing behind.
TEST(Shim, ALostDeviceEndsEveryCase) {
  for (const char* at : {"2", "4", "7"}) {
    size_t lost = 0;
    for (const CaseResult& result : resultsWith("device_lost", at))
      lost += result.outcome == Outcome::failed &&
              result.reason.find("device_lost: the device is gone") != result.reason.npos;
    EXPECT_GT(lost, 50u) << at;
  }
}

} // namespace
} // namespace candela::conformance
