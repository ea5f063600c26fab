#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <candela/backend.hpp>
#include <cstring>
#include <set>

#include "conformance/port.h"
#include "conformance/suite.h"
#include "conformance/tiers/models/manifest.h"
#include "conformance/tiers/models/networks.h"
#include "core/reference/reference.h"
#include "core/runtime/host_executor/soft.h"
#include "core/support/compare.h"

using namespace candela;
using namespace candela::conformance;
using namespace candela::conformance::tiers::models;
using testing::HasSubstr;
using Outcome = CaseResult::Outcome;

namespace {

/// soft behind door 2, with a fault.
enum class Fault {
  none,
  saysEmulated,
  saysUnsupported,
  refuses,
  stale,
  off,
  slightlyOff,
  forgets
} fault = Fault::none;

struct Compiled : cdl::Executable {
  explicit Compiled(const cdl_image_t* image) : image(image) {}
  cdl::Status execute(const cdl::Addresses& buffers) override {
    std::vector<void*> addresses(image->buffers.count, nullptr);
    for (uint32_t b = 1; b < image->buffers.count; ++b)
      addresses[b] = buffers.address(b, cdl_get_buffer(image, b)->bytes);
    cdl::Status status = cdl::forEachInstr(image, [&](uint32_t i, const int64_t* loops) {
      // A token that is not written to its cache.
      if (fault == Fault::forgets && cdl_get_instr(image, i)->kind == CDL_KIND_SCATTER)
        return cdl::ok();
      const cdl::Status status(
          runtime::host_executor::run(image, i, loops, addresses.data(), nullptr, nullptr), "soft");
      if (fault == Fault::slightlyOff && cdl_get_instr(image, i)->kind == CDL_KIND_MATMUL)
        nudge(addresses, i);
      return status;
    });
    for (uint32_t b = 1; b < image->buffers.count; ++b) {
      const cdl_buffer_t& buffer = *cdl_get_buffer(image, b);
      if (buffer.role != CDL_ROLE_OUTPUT) continue;
      std::string& kept = first[b];
      if (kept.empty()) kept.assign(static_cast<const char*>(addresses[b]), buffer.bytes);
      if (fault == Fault::stale) std::memcpy(addresses[b], kept.data(), buffer.bytes);
      if (fault == Fault::off) *static_cast<float*>(addresses[b]) += 3e-3f;
    }
    return status;
  }
  /// Less than shows at the end of a network.
  void nudge(const std::vector<void*>& addresses, uint32_t i) const {
    const cdl_instr_t& instr = *cdl_get_instr(image, i);
    const cdl_view_t& y = *cdl_get_view(image, instr.first_view + instr.inputs);
    auto* value = static_cast<float*>(addresses[y.buffer]);
    for (uint64_t e = 0; e < cdl_get_buffer(image, y.buffer)->bytes / sizeof(float); ++e)
      value[e] *= 1 + 1e-5f;
  }
  cdl::Support support(uint32_t i) const override {
    const bool isProduct = cdl_get_instr(image, i)->kind == CDL_KIND_MATMUL;
    return fault == Fault::saysEmulated && isProduct ? cdl::Support::EMULATED
                                                     : cdl::Support::NATIVE;
  }
  const cdl_image_t* image;
  std::map<uint32_t, std::string> first;
};

class Compiler : public cdl::ProgramBackend {
public:
  Compiler() : ProgramBackend("compiler", "0.1.0") { claim(cdl::Profile::FP32); }
  cdl::Status compile(const cdl_image_t* image, const void* const*,
                      std::unique_ptr<cdl::Executable>& executable) override {
    if (fault == Fault::saysUnsupported) return cdl::unsupported("not my day");
    for (uint32_t i = 1; i < image->instrs.count; ++i)
      if (fault == Fault::refuses && cdl_get_instr(image, i)->kind == CDL_KIND_MATMUL)
        return cdl::refused(i, CDL_REASON_NONE, "not today");
    executable = std::make_unique<Compiled>(image);
    return cdl::ok();
  }
};

/// Every row EMULATED.
struct OnlyMemory : cdl::PrimitiveBackend {
  OnlyMemory() : PrimitiveBackend("nothing", "0.1.0") { claim(cdl::Profile::FP32); }
};

cdl_code_t query(const cdl_host_t* host, cdl_plugin_t* out, cdl_error_t* error) {
  const cdl_code_t code = cdl::detail::Entry<Compiler>::query(host, out, error);
  // With every row of soft's.
  if (code == CDL_OK)
    out->device_capabilities = [](cdl_device_t*) noexcept -> const cdl_capabilities_t* {
      return &runtime::host_executor::capabilities();
    };
  return code;
}

std::vector<Case> casesOf(Size size) {
  Selection selection;
  selection.size = size;
  return tiers::models::modelCases(selection).value();
}

Case caseOf(const std::string& address) {
  for (Case& one : casesOf(Size::nightly))
    if (one.address == address) return one;
  ADD_FAILURE() << "no case " << address;
  return {};
}

CaseResult runWith(Fault with, const std::string& address) {
  runtime::plugin::registerStatic("compiler", query);
  fault = with;
  Port port("compiler");
  return caseOf(address).run(port);
}

} // namespace

TEST(ModelsTier, ListsTheSameCasesEachTime) {
  std::set<std::string> nightly;
  for (const Case& one : casesOf(Size::nightly))
    EXPECT_TRUE(nightly.insert(one.address).second) << one.address;
  for (const char* address : {"models:cnn_int8:size=small;batch=3",
                              "models:lstm_f32:size=large;batch=1", "models:decoder:batch=3"})
    EXPECT_TRUE(nightly.contains(address)) << address;
  EXPECT_FALSE(nightly.contains("models:gru_int8:size=small;batch=1")); // there is no such one
  const auto full = casesOf(Size::full), again = casesOf(Size::full);
  ASSERT_EQ(full.size(), again.size());
  for (size_t i = 0; i < full.size(); ++i) {
    EXPECT_EQ(full[i].address, again[i].address);
    EXPECT_TRUE(nightly.contains(full[i].address)) << full[i].address;
    EXPECT_EQ(full[i].address.find("large"), std::string::npos);
  }
  EXPECT_EQ(casesOf(Size::quick).size(), 2);
}

TEST(ModelsTier, WeightsAreTheSameOnEveryMachine) {
  EXPECT_EQ(weightOf(0, 0), 0x1.3836e8p-2f);
  EXPECT_EQ(weightOf(3, 1000), 0x1.1eb8cp-5f);
}

// Answers that are all alike, or clipped, would hide faults.
TEST(ModelsTier, NetworksAnswerTheirInputs) {
  for (const Network& network : allNetworks())
    for (const bool quantized : {false, true}) {
      if (quantized && network.quantized == Network::Quantized::none) continue;
      const graph::Graph graph = network.build({1, quantized, false});
      const graph::TensorType& type = graph.inputs()[0]->type;
      std::vector<Tensor> answers;
      for (const uint64_t seed : {1, 2000000})
        answers.push_back(
            reference::run(graph, std::vector{randomTensor(type.elem, type.dims, seed).value()})
                .value()[0]);
      double spread = 0;
      std::set<double> values;
      for (int64_t i = 0; i < answers[0].count(); ++i) {
        spread =
            std::max(spread, std::abs(elementAsReal(answers[0], i) - elementAsReal(answers[1], i)));
        values.insert(elementAsReal(answers[0], i));
      }
      // Of what is allowed, 2e-4 and one step, 400 and 5 times.
      EXPECT_GE(spread, quantized ? 5 * kActivationStep : 0.08) << network.name;
      EXPECT_GE(values.size() * 5, static_cast<size_t>(answers[0].count())) << network.name;
    }
}

TEST(ModelsTier, PassesWhatIsRight) {
  for (const char* address : {"models:mlp_f32:size=small;batch=3", "models:decoder:batch=1"}) {
    const CaseResult result = runWith(Fault::none, address);
    EXPECT_EQ(result.outcome, Outcome::passed) << result.reason;
    EXPECT_GT(result.work.macs, 0u);
    EXPECT_EQ(result.work.nativeNodes, result.work.nodes);
    EXPECT_EQ(result.work.nativeMacs, result.work.macs);
    EXPECT_THAT(result.placement, testing::Contains(testing::ContainsRegex(
                                      "^[0-9]+ matmul f32: native on compiler$")));
  }
}

TEST(ModelsTier, FailsWhatFellBack) {
  const CaseResult emulated = runWith(Fault::saysEmulated, "models:mlp_f32:size=small;batch=1");
  EXPECT_EQ(emulated.outcome, Outcome::failed);
  EXPECT_THAT(emulated.reason, HasSubstr("fell back although its rows say NATIVE: mlp.matmul_"));
  EXPECT_LT(emulated.work.nativeMacs, emulated.work.macs);
  const CaseResult refused = runWith(Fault::refuses, "models:mlp_f32:size=small;batch=1");
  EXPECT_EQ(refused.outcome, Outcome::failed);
  EXPECT_THAT(refused.reason, HasSubstr("refused by the backend"));
  const CaseResult unsupported =
      runWith(Fault::saysUnsupported, "models:mlp_f32:size=small;batch=1");
  EXPECT_EQ(unsupported.outcome, Outcome::failed);
  EXPECT_THAT(unsupported.reason, HasSubstr("not my day"));
}

TEST(ModelsTier, FailsWhatIsWrong) {
  const CaseResult stale = runWith(Fault::stale, "models:cnn_f32:size=small;batch=1");
  EXPECT_EQ(stale.outcome, Outcome::failed);
  EXPECT_THAT(stale.reason, HasSubstr("run 2: output 0"));
  for (const char* address :
       {"models:cnn_f32:size=small;batch=1", "models:mlp_f32:size=small;batch=1",
        "models:gru_f32:size=small;batch=1"}) {
    const CaseResult off = runWith(Fault::off, address);
    EXPECT_EQ(off.outcome, Outcome::failed) << address;
    EXPECT_THAT(off.reason, HasSubstr("run 1: output 0")) << address;
  }
  const CaseResult slightly = runWith(Fault::slightlyOff, "models:cnn_f32:size=small;batch=1");
  EXPECT_EQ(slightly.outcome, Outcome::failed);
  EXPECT_THAT(slightly.reason, HasSubstr("alone: output 0: element"));
  const CaseResult forgets = runWith(Fault::forgets, "models:decoder:batch=1");
  EXPECT_EQ(forgets.outcome, Outcome::failed);
  EXPECT_THAT(forgets.reason, HasSubstr("first session: token 0"));
}

TEST(ModelsTier, NothingThatTheHostDidCounts) {
  Port port("soft"); // as a plugin, not as the host
  EXPECT_EQ(caseOf("models:mlp_f32:size=small;batch=1").run(port).outcome, Outcome::passed);
  runtime::plugin::registerStatic(
      "nothing", [](const cdl_host_t* host, cdl_plugin_t* out, cdl_error_t* error) {
        return cdl::detail::Entry<OnlyMemory>::query(host, out, error);
      });
  Port nothing("nothing");
  const CaseResult result = caseOf("models:mlp_int8:size=small;batch=1").run(nothing);
  EXPECT_EQ(result.outcome, Outcome::emulated) << result.reason;
  EXPECT_EQ(result.work.nativeMacs, 0u);
}
