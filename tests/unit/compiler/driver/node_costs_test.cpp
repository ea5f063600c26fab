// What nodes take: by the plugin's cost_batch as far as it answers, by rates elsewhere.
#include "core/compiler/driver/node_costs.h"

#include <gmock/gmock.h>

#include "core/compiler/driver/device_costs.h"
#include "tests/unit/compiler/driver/priced_device.h"

namespace candela::driver {
namespace {

using ::testing::HasSubstr;

/// What the device knows.
struct Priced {
  bool knowsPrograms = true, knowsInstrs = true;
} priced;

constexpr uint64_t kProgramCycles = 5000, kInstrCycles = 100;

cdl_code_t cost(cdl_device_t*, const cdl_cost_query_t* queries, uint32_t count, cdl_cost_t* costs,
                cdl_error_t*) {
  for (uint32_t i = 0; i < count; ++i) {
    const bool isProgram = queries[i].instr == 0;
    if (isProgram ? !priced.knowsPrograms : !priced.knowsInstrs) return CDL_UNSUPPORTED;
    costs[i] = {};
    costs[i].latency_cycles = isProgram ? kProgramCycles : 0;
    costs[i].busy_cycles[0] = isProgram ? 0 : kInstrCycles;
  }
  return CDL_OK;
}

constexpr cdl_option_schema_t kOptions[] = {
    {"clock_mhz", "of the device", "int", "500"},
    {"link_bytes_per_second", "to the host", "int", "1000000"},
    {"link_latency_ns", "to the host", "int", "3000"}};

cdl_code_t query(const cdl_host_t*, cdl_plugin_t* out, cdl_error_t*) {
  priced_device::fill(*out);
  out->options = kOptions;
  out->option_count = std::size(kOptions);
  out->cost_batch = cost;
  return CDL_OK;
}

class NodeCostsTest : public testing::Test {
protected:
  void SetUp() override {
    priced = {};
    auto plugin = runtime::plugin::Plugin::fromQuery(query, "test");
    ASSERT_TRUE(plugin) << plugin.status().message();
    auto device = (*plugin)->open(0, {});
    ASSERT_TRUE(device) << device.status().message();
    devices_.push_back(*device);
    targets_ = {&devices_[0]->target(), &hostTarget()};
    graph::Value* x = graph_.addInput("x", graph::TensorType(Elem::f32_, {4, 16}));
    node_ = *graph_.addNode(graph::OpKind::Exp, {x}, {});
    graph_.addOutput(node_->result(), "y");
  }

  /// Of a device that was asked nothing before: its prices are kept.
  lowering::partition::NodeCost costOn(size_t target) {
    options_.deviceCosts = {costsOf(devices_[0])};
    NodeCosts costs(devices_, targets_, options_);
    return costs.model().costOf(*node_, target);
  }

  std::vector<std::shared_ptr<runtime::plugin::Device>> devices_;
  std::vector<const capabilities::Target*> targets_;
  CompileOptions options_;
  graph::Graph graph_;
  const graph::Node* node_ = nullptr;
};

TEST_F(NodeCostsTest, AskForTheProgramThenForItsInstructionsThenTheRates) {
  constexpr double kCycle = 1 / 500e6;
  EXPECT_DOUBLE_EQ(costOn(0).seconds, kProgramCycles * kCycle);
  EXPECT_STREQ(costOn(0).source, "cost_batch");
  priced.knowsPrograms = false;
  const double instrs = costOn(0).seconds / (kInstrCycles * kCycle);
  EXPECT_GE(instrs, 3); // a copy in, the exponential, a copy out
  EXPECT_NEAR(instrs, std::round(instrs), 1e-9);
  EXPECT_STREQ(costOn(0).source, "cost_batch");
  priced.knowsInstrs = false;
  // 512 bytes at 16 in a cycle take longer than 64 elements at 16 in a cycle; and the start.
  EXPECT_DOUBLE_EQ(costOn(0).seconds, 512.0 / 16 * kCycle + 32 * kCycle);
  EXPECT_STREQ(costOn(0).source, "rates");
}

TEST_F(NodeCostsTest, TheHostIsNoDevice) {
  const lowering::partition::TargetRates rates = hostRates();
  EXPECT_DOUBLE_EQ(costOn(1).seconds, 64 / rates.elementsPerSecond + rates.nodeSeconds);
  NodeCosts costs(devices_, targets_, options_);
  EXPECT_EQ(costs.model().crossingSeconds(1, 1 << 20), 0);
}

TEST_F(NodeCostsTest, RatesSayWhereTheyAreFrom) {
  const lowering::partition::TargetRates rates = ratesOf(*devices_[0]);
  EXPECT_EQ(rates.name, "priced");
  EXPECT_DOUBLE_EQ(rates.macsPerSecond, 16 * 16 * 500e6);
  EXPECT_EQ(rates.computeSource, "defaults of cdl_tiling_t at 500 MHz of clock_mhz");
  EXPECT_EQ(rates.linkSource, "options of the device");
  NodeCosts costs(devices_, targets_, options_);
  EXPECT_DOUBLE_EQ(costs.model().crossingSeconds(0, 500'000), 3e-6 + 0.5);
}

} // namespace
} // namespace candela::driver
