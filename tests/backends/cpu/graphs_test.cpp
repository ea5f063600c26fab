// Random graphs the whole way: through the passes, the partitioner and the plugin, against the
// oracle.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/compiler/driver/pipeline.h"
#include "core/compiler/graph/passes/passes.h"
#include "core/support/compare.h"
#include "tests/backends/cpu/network_maker.h"

namespace candela::testing {
namespace {

using graph::Graph;

struct Tier {
  std::string name;
  std::shared_ptr<runtime::plugin::Device> device;
};
const std::vector<Tier>& tiers() {
  static const std::vector<Tier> found = [] {
    std::vector<Tier> open;
    const auto plugin = runtime::plugin::findPlugin(PLUGIN_cpu);
    for (const char* isa : {"x86-64-v3", "avxvnni", "avx512", "avx512vnni", "avx512bf16", "amx"})
      if (plugin)
        if (auto device = (*plugin)->open(0, {{"isa", isa}})) open.push_back({isa, *device});
    return open;
  }();
  return found;
}

std::string sizeOfTest() {
  const char* size = std::getenv("CANDELA_TEST_SIZE");
  return size ? size : "quick";
}
int graphs() { return sizeOfTest() == "quick" ? 60 : sizeOfTest() == "full" ? 400 : 2000; }

class CpuGraphs : public ::testing::Test {
protected:
  void SetUp() override {
    if (tiers().empty()) GTEST_SKIP() << "this processor lacks AVX2, FMA, F16C or BMI2";
  }

  /// Nightly on every tier; else every graph on one of them in turn.
  void judge(uint64_t seed, const std::function<RandomGraph()>& make, double tolerance) {
    for (size_t t = 0; t < tiers().size(); ++t)
      if (const Tier& tier = tiers()[t]; sizeOfTest() == "nightly" || t == seed % tiers().size())
        judgeOn({tier.device}, fmt::format("seed {} on {}", seed, tier.name), make, tolerance);
  }
  void judgeOn(const std::vector<std::shared_ptr<runtime::plugin::Device>>& devices,
               const std::string& trace, const std::function<RandomGraph()>& make,
               double tolerance) {
    SCOPED_TRACE(trace);
    RandomGraph random = make();
    const auto expected = reference::run(random.graph, random.inputs);
    ASSERT_TRUE(expected.isOk()) << expected.status().message();
    const std::string text = textOf(random.graph);
    RandomGraph again = make();
    const auto session = driver::compile(std::move(again.graph), "case", devices);
    ASSERT_TRUE(session.isOk()) << session.status().message() << "\n" << text;
    runtime::session::RunStats stats;
    const auto got = (*session)->run(random.inputs, &stats);
    ASSERT_TRUE(got.isOk()) << got.status().message() << "\n" << text;
    for (const runtime::bundle::BundlePartition& part : (*session)->bundle().partitions) {
      const auto* image = reinterpret_cast<const cdl_image_t*>(part.image.data());
      for (uint32_t i = 1; i < image->instrs.count; ++i) {
        const cdl_instr_t& instr = *cdl_get_instr(image, i);
        epilogues_ += instr.expr && instr.kind != CDL_KIND_ELEMENTWISE;
      }
    }
    native_ += stats.nativeInstrs,
        all_ += stats.nativeInstrs + stats.emulatedInstrs + stats.hostInstrs;
    // Where a quantization follows approximate functions, what lies near a half may round either
    // way.
    const bool rounds =
        tolerance > 0 && std::ranges::any_of(random.graph.nodes(), [](const auto& node) {
          return node->kind == graph::OpKind::Quantize || node->kind == graph::OpKind::Cast ||
                 node->kind == graph::OpKind::Round;
        });
    if (!rounds) expectSame(*expected, *got, tolerance);
    if (HasFailure()) ADD_FAILURE() << text;
  }

  void TearDown() override {
    if (all_) fmt::print("{} of {} instructions native\n", native_, all_);
  }

  uint64_t native_ = 0, all_ = 0, epilogues_ = 0;
};

TEST_F(CpuGraphs, ElementwiseChainsAreExact) {
  for (int seed = 1; seed <= graphs() / 4 && !HasFailure(); ++seed)
    judge(
        static_cast<uint64_t>(seed),
        [&] {
          RandomGraph random = GraphMaker(static_cast<uint64_t>(seed)).makeElementwise(30);
          random.graph.eraseDead();
          return random;
        },
        0);
}

TEST_F(CpuGraphs, MixedGraphs) {
  for (int seed = 1; seed <= graphs() / 4 && !HasFailure(); ++seed)
    judge(
        static_cast<uint64_t>(seed),
        [&] { return GraphMaker(static_cast<uint64_t>(seed)).makeMixed(20); }, 1e-4);
}

TEST_F(CpuGraphs, Networks) {
  for (int seed = 1; seed <= graphs() / 2 && !HasFailure(); ++seed)
    judge(
        static_cast<uint64_t>(seed),
        [&] { return NetworkMaker(static_cast<uint64_t>(seed)).make(2 + seed % 5); }, 1e-4);
  EXPECT_GT(native_ * 100, all_ * 95);
  EXPECT_GT(epilogues_, static_cast<uint64_t>(graphs()));
}

/// The host fuses what its own rows take, and runs it.
TEST_F(CpuGraphs, NetworksOnTheHost) {
  for (int seed = 1; seed <= graphs() / 8 && !HasFailure(); ++seed)
    judgeOn(
        {}, fmt::format("seed {} on the host", seed),
        [&] { return NetworkMaker(static_cast<uint64_t>(seed)).make(2 + seed % 5); }, 1e-4);
  EXPECT_GT(epilogues_, 0u);
}

/// The integers of the raised graph, bit by bit.
TEST_F(CpuGraphs, QuantizedNetworksAreExact) {
  for (int seed = 1; seed <= graphs() / 2 && !HasFailure(); ++seed)
    judge(
        static_cast<uint64_t>(seed),
        [&] {
          RandomGraph random = NetworkMaker(static_cast<uint64_t>(seed), true).make(2 + seed % 5);
          EXPECT_TRUE(graph::passes::optimize(random.graph).isOk());
          return random;
        },
        0);
  EXPECT_GT(native_ * 100, all_ * 99);
}

/// The relative L2 norm of what two tensors of floats differ by.
double apart(const Tensor& expected, const Tensor& got) {
  double difference = 0;
  double size = 1e-12;
  for (int64_t i = 0; i < expected.count(); ++i) {
    const double want = elementAsReal(expected, i);
    difference += std::pow(elementAsReal(got, i) - want, 2);
    size += want * want;
  }
  return std::sqrt(difference / size);
}

/// Also on a machine without instructions for them.
TEST_F(CpuGraphs, NetworksOfBF16) {
  const auto plugin = runtime::plugin::findPlugin(PLUGIN_cpu);
  ASSERT_TRUE(plugin.isOk());
  const auto device = (*plugin)->open(0, {{"bf16", "always"}});
  ASSERT_TRUE(device.isOk()) << device.status().message();
  driver::CompileOptions options;
  options.precision = driver::Precision::bf16;
  for (int seed = 1; seed <= graphs() / 2 && !HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    RandomGraph random = NetworkMaker(static_cast<uint64_t>(seed)).make(2 + seed % 5);
    const auto expected = reference::run(random.graph, random.inputs);
    ASSERT_TRUE(expected.isOk()) << expected.status().message();
    const auto session = driver::compile(std::move(random.graph), "case", {&*device, 1}, options);
    ASSERT_TRUE(session.isOk()) << session.status().message();
    const auto got = (*session)->run(random.inputs);
    ASSERT_TRUE(got.isOk()) << got.status().message();
    for (size_t i = 0; i < expected->size(); ++i)
      if (isFloat((*expected)[i].elem)) {
        EXPECT_LT(apart((*expected)[i], (*got)[i]), 0.05);
      }
  }
}

} // namespace
} // namespace candela::testing
