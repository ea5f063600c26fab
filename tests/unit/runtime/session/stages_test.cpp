// Steps that follow each other on one device: one stage, in which values stay there and executions
// wait for each other by their timelines.
#include <gtest/gtest.h>

#include "core/compiler/driver/pipeline.h"

namespace candela {
namespace {

using runtime::bundle::Bundle;
using runtime::session::RunStats;
using runtime::session::Session;
using DevicePtr = std::shared_ptr<runtime::plugin::Device>;

/// y = relu(a b + a)
constexpr const char* kText = R"(graph @g(%a: f32[2,2], %b: f32[2,2]) -> (%y: f32[2,2]) {
  %p = matmul %a, %b
  %s = add %p, %a
  %y = relu %s
}
)";

DevicePtr openTimed(uint32_t index = 0) {
  return runtime::plugin::Plugin::load(PLUGIN_timed).orAbort()->open(index, {}).orAbort();
}

std::unique_ptr<Session> compile(const std::vector<DevicePtr>& devices) {
  Diagnostics diagnostics;
  auto ir = driver::parseIr(kText, "stages.cdl", diagnostics).orAbort();
  return driver::compile(std::get<graph::Graph>(std::move(ir)), "stages.cdl", devices).orAbort();
}

/// The same computation `times` times, each on what the one before it gave, by steps on the devices
/// in turn.
Bundle chain(size_t times, const std::vector<DevicePtr>& devices) {
  Bundle chained = compile({devices[0]})->bundle();
  const runtime::bundle::BundleStep first = chained.steps[0];
  for (size_t i = 1; i < times; ++i) {
    runtime::bundle::BundlePartition partition = chained.partitions[0];
    partition.backend = devices[i % devices.size()]->id();
    chained.partitions.push_back(partition);
    runtime::bundle::BundleStep step = first;
    step.partition = static_cast<uint32_t>(i);
    step.inputs[0] = chained.steps.back().outputs[0];
    step.outputs[0] = static_cast<uint32_t>(chained.values.size());
    chained.values.push_back(chained.values[first.outputs[0]]);
    chained.steps.push_back(step);
  }
  chained.outputs[0] = chained.steps.back().outputs[0];
  return chained;
}

struct Outcome {
  std::vector<float> y;
  RunStats stats;
};

/// b is the identity, so each step doubles what is above 0.
Outcome runOn(Session& session) {
  const std::vector<Tensor> inputs = {Tensor::of<float>(Elem::f32_, {2, 2}, {1, 2, -3, 4}),
                                      Tensor::of<float>(Elem::f32_, {2, 2}, {1, 0, 0, 1})};
  Outcome outcome;
  const std::vector<Tensor> outputs = session.run(inputs, &outcome.stats).orAbort();
  outcome.y.assign(outputs[0].as<float>(), outputs[0].as<float>() + 4);
  return outcome;
}

TEST(Stages, OfOneDeviceAreOneAndKeepTheirValuesThere) {
  const std::vector<DevicePtr> devices = {openTimed()};
  const auto session = Session::create(chain(3, devices), devices).orAbort();
  ASSERT_EQ(session->stages().size(), 1u);
  for (int run = 0; run < 3; ++run) {
    const Outcome outcome = runOn(*session);
    EXPECT_EQ(outcome.y, std::vector<float>({8, 16, 0, 32}));
    EXPECT_EQ(outcome.stats.deviceCopies, 5u) << "a, then b for each step, then the output";
    EXPECT_EQ(outcome.stats.stagedBytes, 0u);
  }
}

TEST(Stages, OfSeveralDevicesAreEachBehindWhatItReads) {
  const std::vector<DevicePtr> devices = {openTimed(0), openTimed(1)};
  const auto session = Session::create(chain(4, devices), devices).orAbort();
  ASSERT_EQ(session->stages().size(), 4u);
  EXPECT_TRUE(session->stages()[0].after.empty());
  for (uint32_t s = 1; s < 4; ++s)
    EXPECT_EQ(session->stages()[s].after, std::vector<uint32_t>{s - 1}) << s;
  const Outcome outcome = runOn(*session);
  EXPECT_EQ(outcome.y, std::vector<float>({16, 32, 0, 64}));
  EXPECT_EQ(outcome.stats.stagedBytes, 0u) << "both devices copy from and to memory of the host";
}

TEST(Stages, ThatAreCancelledBeginNoFurtherStep) {
  const std::vector<DevicePtr> devices = {openTimed()};
  const auto session = Session::create(chain(2, devices), devices).orAbort();
  runtime::session::RunControl control;
  control.cancel(Status(Code::cancelled, "no more"));
  std::vector<float> data(12);
  const auto at = [&](size_t i) {
    return runtime::session::BufferRef::onHost(reinterpret_cast<std::byte*>(&data[i]));
  };
  const std::vector inputs = {at(0), at(4)}, outputs = {at(8)};
  const Status status = session->runAt(inputs, outputs, &control);
  EXPECT_EQ(status.code(), Code::cancelled);
  EXPECT_NE(status.message().find("no more"), std::string::npos) << status.message();
  control.reset();
  EXPECT_TRUE(session->runAt(inputs, outputs, &control));
}

} // namespace
} // namespace candela
