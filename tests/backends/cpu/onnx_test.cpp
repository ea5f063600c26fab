// ONNX's node tests on each tier, whole ops and lowered to primitives.
#include <gtest/gtest.h>

#include "conformance/tiers/onnx_tier.h"
#include "core/compiler/driver/flow_model.h"
#include "tests/backends/cpu/machine.h"

namespace candela::test {
namespace {

constexpr const char* kData = "/usr/share/libonnx-testdata/data/node";
/// of them that pass; only rises, with tests/conformance/onnx_minimum.txt
constexpr int kLeast = 374;

class CpuOnnx : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(, CpuOnnx, testing::Bool(),
                         [](const auto& info) { return info.param ? "Primitives" : "Whole"; });

TEST_P(CpuOnnx, NoNodeTestFailsOnAnyTier) {
  if (tiers().empty()) GTEST_SKIP() << "this processor lacks AVX2, FMA, F16C or BMI2";
  const auto cases = conformance::tiers::listOnnxCases(kData);
  ASSERT_TRUE(cases.isOk()) << cases.status().message();
  for (const std::string& isa : tiers()) {
    const std::vector<std::shared_ptr<runtime::plugin::Device>> devices{openCpu(isa, 1)};
    const auto run = [&](import::Script script,
                         const std::vector<runtime::control_flow::Value>& inputs)
        -> Result<conformance::RunAnswer> {
      driver::CompileOptions options;
      options.toPrimitives = GetParam();
      CDL_ASSIGN(const auto model,
                 driver::FlowModel::create(std::move(script), "case", devices, options));
      conformance::RunAnswer answer;
      CDL_ASSIGN(answer.outputs, model->run(inputs));
      return answer;
    };
    int passed = 0;
    for (const conformance::tiers::OnnxCase& one : *cases) {
      const conformance::CaseResult result = conformance::tiers::runOnnxCase(one, run);
      passed += result.outcome == conformance::CaseResult::Outcome::passed;
      EXPECT_NE(result.outcome, conformance::CaseResult::Outcome::failed)
          << one.name << " on " << isa << ": " << result.reason;
    }
    EXPECT_GE(passed, kLeast) << isa;
  }
}

} // namespace
} // namespace candela::test
