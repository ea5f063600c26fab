// What a device says of tiles chooses between them, through its plugin's cost_batch too; what it
// does not know changes nothing.
#include <gtest/gtest.h>

#include "core/compiler/driver/device_costs.h"
#include "core/compiler/program/passes/tile/tile.h"
#include "core/compiler/program/text.h"
#include "core/runtime/plugin/plugin.h"
#include "tests/unit/compiler/driver/priced_device.h"

using namespace candela;

namespace {

constexpr const char* kConvolution = R"(
program @convolution {
  space @dram {host_mapped, align 64}
  constant @weights : f32[288] = random(1)
  buffer %x input @dram 16384
  buffer %w constant @dram 1152 = @weights
  buffer %y output @dram 32768
  conv2d{strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], group = 1} @in %x[1,4,32,32]:f32, @in %w[8,4,3,3]:f32, @out %y[1,8,32,32]:f32 from "Conv_0":conv
}
)";

program::passes::tile::Machine machine() {
  program::passes::tile::Machine machine;
  machine.memories.push_back({"scratchpad", 16 << 10, 64});
  return machine;
}

/// Output channels and rows of the tiles.
std::vector<int64_t> tileOn(const program::passes::tile::Machine& machine) {
  Diagnostics diagnostics;
  auto program = program::parse(kConvolution, "test.cdl", diagnostics);
  EXPECT_TRUE(program) << diagnostics.status().message();
  const auto report = program::passes::tile::tile(*program, machine);
  EXPECT_TRUE(report) << report.status().message();
  return {report->steps[0].tile[1], report->steps[0].tile[2]};
}

// A plugin of a device that does nothing but say costs: a tile of `dear` channels and rows takes
// long.
std::vector<int64_t> dear;
uint32_t asked = 0;
bool isKnown = true;

cdl_code_t cost(cdl_device_t*, const cdl_cost_query_t* queries, uint32_t count, cdl_cost_t* costs,
                cdl_error_t*) {
  if (!isKnown) return CDL_UNSUPPORTED;
  for (uint32_t i = 0; i < count; ++i) {
    const cdl_image_t* image = queries[i].image;
    cdl_error_t error{};
    if (cdl_image_check(image, image->size, &error) != CDL_OK) return CDL_INVALID_ARGUMENT;
    const cdl_instr_t* instr = cdl_get_instr(image, queries[i].instr);
    const cdl_view_t* result = cdl_get_input(image, instr, instr->inputs);
    // the scratchpad's record
    if (cdl_get_buffer(image, result->buffer)->space != 2) return CDL_INVALID_ARGUMENT;
    costs[i] = {};
    costs[i].busy_cycles[0] =
        result->dims[1] == dear[0] && result->dims[2] == dear[1] ? 1'000'000 : 1;
    ++asked;
  }
  return CDL_OK;
}

cdl_code_t query(const cdl_host_t*, cdl_plugin_t* out, cdl_error_t*) {
  driver::priced_device::fill(*out);
  out->cost_batch = cost;
  return CDL_OK;
}

} // namespace

TEST(DeviceCosts, ChooseAnotherTile) {
  const std::vector<int64_t> declared = tileOn(machine());
  program::passes::tile::Machine asking = machine();
  asking.costs.device =
      std::make_shared<program::passes::tile::DeviceCosts>([&](const program::Program& program) {
        std::vector<double> cycles;
        for (const program::Instr& instr : program.instrs) {
          const std::vector<int64_t>& dims = instr.outputs[0].dims;
          cycles.push_back(dims[1] == declared[0] && dims[2] == declared[1] ? 1e6 : 1);
        }
        return cycles;
      });
  EXPECT_NE(tileOn(asking), declared);
  asking.costs.device = std::make_shared<program::passes::tile::DeviceCosts>(
      [](const program::Program&) { return std::vector<double>(); }); // it does not know
  EXPECT_EQ(tileOn(asking), declared);
}

TEST(DeviceCosts, OfWholeProgramsTakeThePlanOfASmallerDevice) {
  const std::vector<int64_t> declared = tileOn(machine());
  program::passes::tile::Machine half = machine(), asking = machine();
  half.memories[0].capacityBytes /= 2;
  ASSERT_NE(tileOn(half), declared);
  size_t priced = 0;
  const auto pricedBy = [&](double ofFirst, double ofOthers) {
    return std::make_shared<program::passes::tile::DeviceCosts>(
        [](const program::Program&) { return std::vector<double>(); },
        [&priced, ofFirst, ofOthers,
         few = size_t{0}](const program::Program& program) mutable -> std::optional<double> {
          ++priced;
          EXPECT_TRUE(program::verify(program));
          // the device's, whatever the plan is for
          for (const program::Space& space : program.spaces)
            EXPECT_TRUE(!space.local || space.capacityBytes == 16 << 10) << space.capacityBytes;
          if (!few) few = program.instrs.size(); // the first plan is the device's own
          return program.instrs.size() == few ? ofFirst : ofOthers;
        });
  };
  asking.costs.device = pricedBy(1e6, 9e5); // other tiles are faster
  EXPECT_NE(tileOn(asking), declared);
  EXPECT_GT(priced, 1u);
  asking.costs.device = pricedBy(1e6, 2e6);
  EXPECT_EQ(tileOn(asking), declared);
  asking.costs.device = std::make_shared<program::passes::tile::DeviceCosts>(
      [](const program::Program&) { return std::vector<double>(); },
      [](const program::Program&) { return std::nullopt; });
  EXPECT_EQ(tileOn(asking), declared);
}

TEST(DeviceCosts, AreThoseOfThePlugin) {
  const auto plugin = runtime::plugin::Plugin::fromQuery(query, "test");
  ASSERT_TRUE(plugin) << plugin.status().message();
  const auto device = (*plugin)->open(0, {});
  ASSERT_TRUE(device) << device.status().message();
  const std::vector<int64_t> declared = tileOn(machine());
  dear = declared;
  program::passes::tile::Machine asking = machine();
  asking.costs.device = driver::costsOf(*device);
  ASSERT_TRUE(asking.costs.device);
  EXPECT_NE(tileOn(asking), declared);
  EXPECT_GT(asked, 1u);
  isKnown = false;
  asking.costs.device = driver::costsOf(*device);
  EXPECT_EQ(tileOn(asking), declared);
}
