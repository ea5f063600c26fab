// What becomes of a session whose device fails at each of its calls in turn: the error comes
// through with its code, and nothing is left behind.
#include <dlfcn.h>
#include <gmock/gmock.h>

#include "conformance/mutants/shim.h"
#include "core/compiler/driver/pipeline.h"

namespace candela {
namespace {

using conformance::mutants::ShimObjects;
using testing::HasSubstr;

constexpr const char* kText =
    R"(graph @g(%a: f32[4], %b: f32[4]) -> (%new: f32[4], %twice: f32[4]) {
  %new = add %a, %b
  %twice = mul %new, %new
}
)";

Tensor four(float value) {
  return Tensor::of<float>(Elem::f32_, {4}, {value, value, value, value});
}

Status run(runtime::session::Session& session, float value) {
  CDL_ASSIGN(const std::vector<Tensor> outputs,
             session.run(std::vector<Tensor>{four(value), four(1)}));
  const float sum = outputs[0].as<float>()[3], square = outputs[1].as<float>()[0];
  if (sum == value + 1 && square == sum * sum) return Status::ok();
  return failure(Code::mismatch, "{} and {} of {}", sum, square, value);
}

Result<std::unique_ptr<runtime::session::Session>>
sessionWith(const runtime::plugin::Options& options) {
  CDL_ASSIGN(const auto plugin,
             runtime::plugin::Plugin::fromQuery(&conformance::mutants::shimQuery, "shim"));
  CDL_ASSIGN(const auto device, plugin->open(0, options));
  Diagnostics diagnostics;
  CDL_ASSIGN(auto ir, driver::parseIr(kText, "faults.cdl", diagnostics));
  return driver::compile(std::get<graph::Graph>(std::move(ir)), "faults.cdl", std::vector{device});
}

/// The first failure of a session's life: two runs, the second with a context of its own if the
/// first one failed.
Status live(const std::string& fault, uint64_t at) {
  CDL_ASSIGN(const auto session, sessionWith({{"shim", fault}, {"shim_at", std::to_string(at)}}));
  const Status first = run(*session, 3), second = run(*session, 4);
  // One call that fails is no reason to fail for ever; a device that is lost stays lost.
  const bool isForEver = fault == "device_lost" || at == 0;
  EXPECT_TRUE(first || second.isOk() != isForEver)
      << fault << " at " << at << ": " << second.message();
  return first ? second : first;
}

struct Fault {
  const char* name;
  Code code;
  const char* message;
  uint64_t least; ///< how many places of a session's life can fail so
};

/// The base: its library, as the test of the doors knows it.
class Faults : public testing::TestWithParam<const char*> {
protected:
  void SetUp() override {
    void* library = dlopen(GetParam(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    conformance::mutants::setShimBase(
        reinterpret_cast<cdl_backend_query_fn>(dlsym(library, CDL_BACKEND_QUERY_SYMBOL)));
  }
};
INSTANTIATE_TEST_SUITE_P(Doors, Faults,
                         testing::Values(PLUGIN_template, PLUGIN_template_memory, PLUGIN_door2),
                         [](const auto& info) { return std::to_string(info.index + 1); });

TEST_P(Faults, NoneIsNone) {
  const Status status = live("none", 0);
  EXPECT_TRUE(status) << status.message();
  EXPECT_EQ(conformance::mutants::shimObjects(), ShimObjects());
}

TEST_P(Faults, ComeThroughWithTheirCodeAndLeaveNothing) {
  for (const Fault& fault : {Fault{"device_lost", Code::device_lost, "the device is gone", 10},
                             Fault{"error", Code::internal, "a fault was asked for", 10},
                             Fault{"unknown_code", Code::internal, "unknown code 999", 10},
                             Fault{"out_of_memory", Code::out_of_memory, "no memory is left", 3},
                             Fault{"timeout", Code::timeout, "no answer in time", 2}}) {
    uint64_t failures = 0;
    for (uint64_t at = 1;; ++at) {
      ASSERT_LT(at, 500u) << fault.name;
      const Status status = live(fault.name, at);
      EXPECT_EQ(conformance::mutants::shimObjects(), ShimObjects())
          << fault.name << " at " << at << " left something behind";
      if (status) {
        // A map that is refused is no failure: the host copies then. Behind the last call nothing
        // fails any more.
        if (live(fault.name, at + 1) && live(fault.name, at + 2) && live(fault.name, at + 3)) break;
        continue;
      }
      ++failures;
      EXPECT_EQ(status.code(), fault.code)
          << fault.name << " at " << at << ": " << status.message();
      EXPECT_THAT(status.message(), HasSubstr(fault.message)) << fault.name << " at " << at;
    }
    EXPECT_GE(failures, fault.least) << fault.name;
  }
}

TEST_P(Faults, ObjectsThatAreNoneAreNamed) {
  for (const auto& [fault, message] :
       {std::pair("null_memory", "memory_create succeeded without memory"),
        std::pair("null_queue", "queue_create succeeded without a queue")}) {
    const Status status = live(fault, 0);
    EXPECT_EQ(status.code(), Code::internal) << fault;
    EXPECT_THAT(status.message(), HasSubstr(message));
    EXPECT_EQ(conformance::mutants::shimObjects(), ShimObjects()) << fault;
  }
}

} // namespace
} // namespace candela
