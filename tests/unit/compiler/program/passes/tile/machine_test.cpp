// What a device declares is what its Programs are tiled for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/compiler/program/passes/tile/machine.h"
#include "tests/unit/compiler/capabilities/tables.h"

using namespace candela;
using capabilities::Table;
using ::testing::HasSubstr;

namespace {

/// A device with a level of its own for sums behind the one that it computes on.
Table twoMemories() {
  Table table = Table::required({CDL_PROFILE_BASE, CDL_PROFILE_INT8});
  table.spaces.push_back({0, CDL_SPACE_LOCAL, 256 << 10, 32, 4});
  table.spaces.push_back({0, CDL_SPACE_LOCAL | CDL_SPACE_SUMS, 64 << 10, 64, 2});
  table.spaceNames = {"dram", "scratchpad", "accumulator"};
  return table;
}

std::optional<program::passes::tile::Machine> machineFrom(const cdl_capabilities_t& table) {
  const auto target = capabilities::Target::fromCapabilities("acme", table, false);
  EXPECT_TRUE(target) << target.status().message();
  return target ? program::passes::tile::machineOf(*target) : std::nullopt;
}

} // namespace

TEST(Machine, IsWhatADeviceDeclares) {
  Table table = twoMemories();
  table.view();
  cdl_tiling_t tiling{};
  tiling.header = CDL_HEADER(cdl_tiling_t);
  tiling.compute_engine = 3, tiling.load_engine = 2, tiling.store_engine = 1;
  tiling.rows = 8, tiling.columns = 32, tiling.lanes = 4;
  tiling.bytes_per_kilocycle = 19'200, tiling.copy_cycles = 7, tiling.instr_cycles = 5;
  table.table.engine_count = 4;
  table.table.tiling = &tiling;
  const auto machine = machineFrom(table.table);
  ASSERT_TRUE(machine);
  EXPECT_TRUE(program::passes::tile::checkMachine(*machine));
  ASSERT_EQ(machine->memories.size(), 2u);
  EXPECT_EQ(machine->memories[0].name, "scratchpad");
  EXPECT_EQ(machine->memories[0].capacityBytes, 256u << 10);
  EXPECT_EQ(machine->memories[0].alignment, 32u);
  EXPECT_FALSE(machine->memories[0].sums);
  EXPECT_EQ(machine->memories[1].name, "accumulator");
  EXPECT_TRUE(machine->memories[1].sums);
  EXPECT_EQ(machine->computeEngine, 3);
  EXPECT_EQ(machine->loadEngine, 2);
  EXPECT_EQ(machine->storeEngine, 1);
  EXPECT_EQ(machine->costs.rows, 8u);
  EXPECT_EQ(machine->costs.columns, 32u);
  EXPECT_EQ(machine->costs.lanes, 4u);
  EXPECT_EQ(machine->costs.bytesPerCycle, 19.2);
  EXPECT_EQ(machine->costs.copyCycles, 7u);
  EXPECT_EQ(machine->costs.instrCycles, 5u);
}

TEST(Machine, HasDefaultsWhereADeviceIsSilent) {
  Table table = twoMemories();
  table.view();
  table.table.engine_count = 3;
  const program::passes::tile::TileCosts otherwise;
  cdl_tiling_t tiling{};
  tiling.header = CDL_HEADER(cdl_tiling_t);
  for (const cdl_tiling_t* declared :
       {static_cast<const cdl_tiling_t*>(nullptr), &std::as_const(tiling)}) {
    table.table.tiling = declared;
    const auto machine = machineFrom(table.table);
    ASSERT_TRUE(machine);
    EXPECT_EQ(machine->computeEngine, 0);
    EXPECT_EQ(machine->loadEngine, 1);
    EXPECT_EQ(machine->storeEngine, 2);
    EXPECT_EQ(machine->costs.rows, otherwise.rows);
    EXPECT_EQ(machine->costs.bytesPerCycle, otherwise.bytesPerCycle);
    EXPECT_EQ(machine->costs.copyCycles, otherwise.copyCycles);
  }
  // A table of an older ABI ends before it.
  table.table.tiling = reinterpret_cast<const cdl_tiling_t*>(1);
  table.table.header.struct_size = offsetof(cdl_capabilities_t, tiling);
  EXPECT_TRUE(machineFrom(table.table));
}

TEST(Machine, IsNoneWithoutLocalMemory) {
  EXPECT_FALSE(machineFrom(Table::required({CDL_PROFILE_BASE, CDL_PROFILE_INT8}).view()));
}

TEST(Machine, HasSumsLast) {
  Table table = twoMemories();
  std::swap(table.spaces[1], table.spaces[2]);
  std::swap(table.spaceNames[1], table.spaceNames[2]);
  const auto machine = machineFrom(table.view());
  ASSERT_TRUE(machine);
  EXPECT_THAT(program::passes::tile::checkMachine(*machine).message(),
              HasSubstr("'accumulator' for sums does not stand last"));
}
