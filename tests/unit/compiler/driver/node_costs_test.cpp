// What nodes take: by the plugin's cost_batch as far as it answers, by rates elsewhere.
#include "core/compiler/driver/node_costs.h"

#include <gmock/gmock.h>

#include "core/compiler/driver/device_costs.h"
#include "tests/unit/compiler/capabilities/tables.h"

namespace candela::driver {
namespace {

using ::testing::HasSubstr;

/// A device that does nothing but say costs.
struct Priced {
  bool knowsPrograms = true, knowsInstrs = true;
} priced;

constexpr uint64_t kProgramCycles = 5000, kInstrCycles = 100;

template <typename... Arguments> cdl_code_t refuse(Arguments...) { return CDL_UNSUPPORTED; }
template <typename... Arguments> void nothing(Arguments...) {}

cdl_code_t openDevice(const cdl_host_t*, uint32_t, const cdl_option_t*, uint32_t,
                      cdl_device_t** device, cdl_error_t*) {
  *device = reinterpret_cast<cdl_device_t*>(&priced);
  return CDL_OK;
}

const cdl_capabilities_t* capabilities(cdl_device_t*) {
  static capabilities::Table table = [] {
    capabilities::Table made = capabilities::Table::required({CDL_PROFILE_BASE, CDL_PROFILE_FP32});
    made.spaces.push_back({0, CDL_SPACE_LOCAL, 16 << 10, 64, 0});
    made.spaceNames = {"memory", "scratchpad"};
    made.view();
    return made;
  }();
  return &table.table;
}

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
  out->header = CDL_HEADER(cdl_plugin_t);
  out->min_host_major = CDL_ABI_MAJOR;
  out->device_count = 1;
  out->name = "priced";
  out->version = "1";
  out->options = kOptions;
  out->option_count = std::size(kOptions);
  out->device_open = openDevice;
  out->device_close = nothing;
  out->device_capabilities = capabilities;
  out->memory_create = refuse;
  out->memory_destroy = nothing;
  out->queue_create = refuse;
  out->queue_destroy = nothing;
  out->queue_write = refuse;
  out->queue_read = refuse;
  out->queue_copy = refuse;
  out->queue_signal = refuse;
  out->queue_wait = refuse;
  out->run = refuse;
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
    options_.deviceCosts = {costsOf(devices_[0])};
    graph::Value* x = graph_.addInput("x", graph::TensorType(Elem::f32_, {4, 16}));
    node_ = *graph_.addNode(graph::OpKind::Exp, {x}, {});
    graph_.addOutput(node_->result(), "y");
  }

  lowering::partition::NodeCost costOn(size_t target) {
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
