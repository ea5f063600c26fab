// The host's threads in the hands of a plugin: soft as one, which cuts its instructions into parts
// for the parallel_for that it was given.
#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "conformance/mutants/soft_port.h"
#include "core/compiler/driver/pipeline.h"
#include "core/runtime/plugin/host.h"
#include "core/support/worker_pool.h"

namespace candela {
namespace {

using runtime::session::Session;

constexpr const char* kText =
    R"(graph @g(%a: f32[48, 64], %b: f32[64, 80]) -> (%parts: f32[48, 80], %sums: f32[80]) {
  %product = matmul %a, %b
  %bounded = tanh %product
  %parts = softmax %bounded {axis = 1}
  %sums = reduce_sum %bounded {axes = [0], keepdims = 0}
}
)";

Tensor numbers(std::vector<int64_t> dims) {
  std::vector<float> values(static_cast<size_t>(dims[0] * dims[1]));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>((i * i * 7 + i * 3) % 101) * 0.01f - 0.5f;
  return Tensor::of<float>(Elem::f32_, dims, values);
}

/// Without a device the built-in executor runs it.
std::unique_ptr<Session> sessionOn(std::vector<std::shared_ptr<runtime::plugin::Device>> devices) {
  Diagnostics diagnostics;
  auto ir = driver::parseIr(kText, "lent.cdl", diagnostics).orAbort();
  return driver::compile(std::get<graph::Graph>(std::move(ir)), "lent.cdl", devices).orAbort();
}

std::vector<Tensor> run(Session& session) {
  return session.run(std::vector<Tensor>{numbers({48, 64}), numbers({64, 80})}).orAbort();
}

void expectSame(const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_EQ(std::memcmp(got[i].bytes.data(), want[i].bytes.data(), want[i].bytes.size()), 0)
        << "output " << i;
}

// Each body waits for the others.
TEST(LentThreads, AreTheHosts) {
  WorkerPool::ofProcess().setThreads(3);
  const cdl_host_t& host = runtime::plugin::host();
  ASSERT_NE(host.parallel_for, nullptr);
  std::latch all(3);
  host.parallel_for(
      host.context, 3,
      [](void* arg, uint32_t) { static_cast<std::latch*>(arg)->arrive_and_wait(); }, &all);
}

TEST(LentThreads, ServeAPluginThatSeveralThreadsRun) {
  WorkerPool::ofProcess().setThreads(1);
  const std::vector<Tensor> want = run(*sessionOn({}));
  const auto plugin =
      runtime::plugin::Plugin::fromQuery(&conformance::mutants::softQuery, "soft").orAbort();
  for (const unsigned threads : {1u, 2u, 3u, 8u}) {
    WorkerPool::ofProcess().setThreads(threads);
    expectSame(run(*sessionOn({})), want);
    const auto session = sessionOn({plugin->open(0, {}).orAbort()});
    std::vector<std::vector<Tensor>> answers(4);
    {
      std::vector<std::jthread> callers;
      for (std::vector<Tensor>& answer : answers)
        callers.emplace_back([&] {
          for (int i = 0; i < 5; ++i) answer = run(*session);
        });
    }
    for (const std::vector<Tensor>& answer : answers) expectSame(answer, want);
  }
}

} // namespace
} // namespace candela
