// Models that take more than the memory of a device: what they stream, and what they answer.
#include "core/compiler/driver/fit.h"

#include <gmock/gmock.h>

#include <thread>

namespace candela::driver {
namespace {

using runtime::bundle::Holding;
using runtime::session::RunStats;
using runtime::session::Session;

constexpr const char* kText = R"(graph @g(%x: f32[4,64]) -> (%y: f32[4,64]) {
  %w0 = constant random(1) : f32[64,64]
  %p0 = matmul %x, %w0 : f32[4,64]
  %w1 = constant random(2) : f32[64,64]
  %p1 = matmul %p0, %w1 : f32[4,64]
  %w2 = constant random(3) : f32[64,64]
  %p2 = matmul %p1, %w2 : f32[4,64]
  %w3 = constant random(4) : f32[64,64]
  %y = matmul %p2, %w3 : f32[4,64]
}
)";
constexpr uint64_t kMatrix = 64 * 64 * 4;

const std::map<std::string, std::string> kPlugins = {{"limited", PLUGIN_limited},
                                                     {"limited_program", PLUGIN_limited_program},
                                                     {"limited_stored", PLUGIN_limited_stored}};

Result<std::shared_ptr<runtime::plugin::Device>> open(const std::string& name, uint64_t capacity,
                                                      uint64_t declared) {
  CDL_ASSIGN(const auto plugin, runtime::plugin::Plugin::load(kPlugins.at(name)));
  return plugin->open(
      0, {{"capacity", std::to_string(capacity)}, {"declared", std::to_string(declared)}});
}

Result<std::unique_ptr<Session>>
compiled(std::vector<std::shared_ptr<runtime::plugin::Device>> devices) {
  Diagnostics diagnostics;
  CDL_ASSIGN(Ir ir, parseIr(kText, "fit.cdl", diagnostics));
  return compile(std::get<graph::Graph>(std::move(ir)), "fit.cdl", devices);
}

Tensor input() {
  std::vector<float> values(4 * 64);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7) - 3;
  return Tensor::of<float>(Elem::f32_, {4, 64}, values);
}

Result<std::vector<float>> answer(Session& session, RunStats* stats = nullptr) {
  CDL_ASSIGN(const std::vector<Tensor> outputs, session.run(std::vector<Tensor>{input()}, stats));
  const float* const values = outputs[0].as<float>();
  return std::vector<float>(values, values + outputs[0].count());
}

std::vector<float> expected() {
  const auto session = compiled({});
  EXPECT_TRUE(session.isOk()) << session.status().message();
  const auto values = answer(**session);
  EXPECT_TRUE(values.isOk()) << values.status().message();
  return *values;
}

uint64_t streamedBytes(const Session& session) {
  uint64_t bytes = 0;
  for (const auto& partition : session.bundle().partitions) bytes += partition.streamedBytes;
  return bytes;
}

class Fit : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Devices, Fit,
                         testing::Values("limited", "limited_program", "limited_stored"),
                         [](const auto& info) { return std::string(info.param); });

void expectAnswer(Session& session) {
  const std::vector<float> want = expected();
  RunStats stats;
  for (int run = 0; run < 3; ++run) {
    const auto got = answer(session, &stats);
    ASSERT_TRUE(got.isOk()) << got.status().message();
    for (size_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR((*got)[i], want[i], 1e-3 * std::abs(want[i]) + 1e-3) << i;
    EXPECT_EQ(stats.streamedBytes, streamedBytes(session));
  }
}

TEST_P(Fit, WhatFitsHoldsEverything) {
  const auto device = open(GetParam(), 1 << 20, 1 << 20);
  ASSERT_TRUE(device.isOk()) << device.status().message();
  const auto session = compiled({*device});
  ASSERT_TRUE(session.isOk()) << session.status().message();
  ASSERT_EQ((*session)->bundle().partitions.size(), 1u);
  EXPECT_EQ((*session)->bundle().partitions[0].holding, Holding::everything);
  EXPECT_EQ(streamedBytes(**session), 0u);
  expectAnswer(**session);
}

TEST_P(Fit, ConstantsStream) {
  const uint64_t capacity = 5 * kMatrix / 2;
  const auto device = open(GetParam(), capacity, capacity);
  ASSERT_TRUE(device.isOk()) << device.status().message();
  const auto session = compiled({*device});
  ASSERT_TRUE(session.isOk()) << session.status().message();
  for (const auto& partition : (*session)->bundle().partitions)
    EXPECT_EQ(partition.backend, GetParam());
  // One matrix stays, each of the others comes when its turn does. A stored executable is a header
  // and more.
  EXPECT_GE(streamedBytes(**session), 3 * kMatrix);
  EXPECT_LE(streamedBytes(**session), 3 * kMatrix * 13 / 10);
  expectAnswer(**session);
}

TEST_P(Fit, MemoryThatIsLessThanDeclaredIsFoundOut) {
  for (const uint64_t declared : {uint64_t(0), 5 * kMatrix}) {
    const auto device = open(GetParam(), 5 * kMatrix / 2, declared);
    ASSERT_TRUE(device.isOk()) << device.status().message();
    const auto session = compiled({*device});
    ASSERT_TRUE(session.isOk()) << session.status().message();
    for (const auto& partition : (*session)->bundle().partitions)
      EXPECT_EQ(partition.backend, GetParam());
    EXPECT_GT(streamedBytes(**session), 0u);
    expectAnswer(**session);
  }
}

TEST_P(Fit, WhatDoesNotFitAloneRunsOnTheHost) {
  const auto device = open(GetParam(), kMatrix + 100, kMatrix + 100);
  ASSERT_TRUE(device.isOk()) << device.status().message();
  const auto session = compiled({*device});
  ASSERT_TRUE(session.isOk()) << session.status().message();
  for (const auto& node : (*session)->bundle().placement) {
    EXPECT_EQ(node.on, "host");
    EXPECT_THAT(node.why, testing::HasSubstr("[memory]"));
  }
  expectAnswer(**session);
}

// Runs take turns on the device: no two parts are there at once.
TEST_P(Fit, ThreadsTakeTurns) {
  const uint64_t capacity = 5 * kMatrix / 2;
  const auto device = open(GetParam(), capacity, capacity);
  ASSERT_TRUE(device.isOk()) << device.status().message();
  const auto session = compiled({*device});
  ASSERT_TRUE(session.isOk()) << session.status().message();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int run = 0; run < 10; ++run) {
        const auto got = answer(**session);
        EXPECT_TRUE(got.isOk()) << got.status().message();
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_P(Fit, AnotherSessionReadsTheBundle) {
  const uint64_t capacity = 5 * kMatrix / 2;
  const auto device = open(GetParam(), capacity, capacity);
  ASSERT_TRUE(device.isOk()) << device.status().message();
  auto session = compiled({*device});
  ASSERT_TRUE(session.isOk()) << session.status().message();
  const auto stored = (*session)->stored();
  ASSERT_TRUE(stored.isOk()) << stored.status().message();
  (*session).reset(); // and what it holds of the device
  session = Session::create(*stored, std::vector{*device});
  ASSERT_TRUE(session.isOk()) << session.status().message();
  expectAnswer(**session);
}

} // namespace
} // namespace candela::driver
