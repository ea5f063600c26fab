// The catalogue of faulty backends: complete, and every one of them caught by the tier that its
// fault belongs to.
#include "conformance/mutants/kill.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "conformance/mutants/soft_port.h"
#include "conformance/port.h"
#include "conformance/suite.h"

namespace candela::conformance {
namespace {

mutants::MutantOptions some(const std::string& query) {
  mutants::MutantOptions options;
  options.jobs = 2;
  options.query = query;
  return options;
}

TEST(Mutants, FillTheWholeMatrix) {
  EXPECT_EQ(mutants::matrixGaps(), std::vector<std::string>());
  std::set<std::string> names;
  for (const mutants::Fault& fault : mutants::allFaults()) {
    EXPECT_TRUE(names.insert(fault.name).second) << fault.name;
    EXPECT_TRUE(fault.run || fault.capabilities || fault.table) << fault.name << " does nothing";
  }
  EXPECT_GE(names.size(), 250u);
}

TEST(Mutants, AreRefusedByNameWhenThereIsNone) {
  Port port("soft", {{"fault", "matmul.off_by_won"}});
  const auto device = port.device();
  ASSERT_FALSE(device.isOk());
  EXPECT_NE(device.status().message().find("there is no fault 'matmul.off_by_won'"),
            std::string::npos)
      << device.status().message();
}

TEST(Mutants, NoneOfThemIsSoft) {
  for (const char* door : {"run", "compile"}) {
    Port port("soft", {{"door", door}});
    ASSERT_TRUE(port.device().isOk());
    EXPECT_EQ((*port.device())->compiles(), std::string(door) == "compile");
  }
}

/// The cases that a backend with this fault, which declares that it flushes denormals, fails of its
/// kind.
std::set<std::string> failedByFlushing(const std::string& fault) {
  static cdl_plugin_t original;
  runtime::plugin::registerStatic(
      "flushing", [](const cdl_host_t* host, cdl_plugin_t* out, cdl_error_t* error) {
        const cdl_code_t code = mutants::softQuery(host, out, error);
        original = *out;
        out->device_capabilities = [](cdl_device_t* device) -> const cdl_capabilities_t* {
          static cdl_capabilities_t table;
          table = *original.device_capabilities(device);
          table.flags |= CDL_DEVICE_FTZ_F32 | CDL_DEVICE_FTZ_F16;
          return &table;
        };
        return code;
      });
  Port port("flushing", {{"fault", fault}});
  std::set<std::string> failed;
  const std::vector<Case> cases = tiers::primitives::primitiveCases(Selection()).orAbort();
  for (const Case& one : cases)
    if (one.address.starts_with("primitives:" + fault.substr(0, fault.find('.')) + "/") &&
        one.address.find("65537") == one.address.npos && // large ones show nothing more
        one.run(port).outcome == CaseResult::Outcome::failed)
      failed.insert(one.address);
  return failed;
}

/// That they are killed without their flag, the kill matrix shows.
TEST(Mutants, WhatFlushesDenormalsAndSaysSoIsNone) {
  for (const char* fault :
       {"binary.denormals_flushed", "unary.denormal_operands", "matmul.denormals_flushed"})
    for (const std::string& address : failedByFlushing(fault))
      EXPECT_NE(address.find("f64"), address.npos) << fault << ": " << address;
  EXPECT_FALSE(failedByFlushing("copy.denormals_flushed").empty())
      << "what is moved stays as it is";
}

/// A backend that looks busy is caught, by a case that asks for work.
class Vacuous : public testing::TestWithParam<const char*> {};

TEST_P(Vacuous, IsCaughtByThePrimitives) {
  const auto verdicts = mutants::runMutants(some(GetParam()));
  ASSERT_TRUE(verdicts.isOk()) << verdicts.status().message();
  ASSERT_EQ(verdicts->size(), 1u);
  const mutants::Verdict& verdict = verdicts->front();
  EXPECT_TRUE(verdict.killed);
  EXPECT_EQ(verdict.tier, "primitives");
  EXPECT_EQ(verdict.address.rfind("primitives:", 0), 0u) << verdict.address;
  EXPECT_FALSE(verdict.reason.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Backend, Vacuous,
    testing::Values("primitives.gives_zeros", "primitives.gives_inputs", "primitives.does_nothing",
                    "primitives.answers_from_cache", "primitives.only_powers_of_two",
                    "primitives.only_first_run", "primitives.only_second_run",
                    "primitives.only_three_runs", "primitives.only_fresh_queue",
                    "primitives.never_writes_back", "executable.falls_back",
                    "executable.does_nothing", "executable.one_too_many.scratch"),
    [](const auto& info) {
      std::string name = info.param;
      std::ranges::replace(name, '.', '_');
      return name;
    });

} // namespace
} // namespace candela::conformance
