// The built library, opened and asked as ONNX Runtime does.
#include <dlfcn.h>
#include <gmock/gmock.h>

#include <candela/candela.h>

#include "integrations/onnxruntime/options.h"
#include "integrations/onnxruntime/placement.h"
#include "tests/onnxruntime/fake_onnxruntime.h"

namespace candela::ort {
namespace {

using namespace abi;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using CreateFactories = OrtStatus*(const char*, const OrtApiBase*, const OrtLogger*, OrtEpFactory**,
                                   size_t, size_t*);
using ReleaseFactory = OrtStatus*(OrtEpFactory*);

/// "" where there was no failure.
std::string messageOf(OrtStatus* status) {
  const std::unique_ptr<OrtStatus> owned(status);
  return owned ? owned->message : "";
}

class OrtProvider : public testing::Test {
protected:
  void SetUp() override {
    library_ = dlopen(CANDELA_ORT_EP, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
  }

  std::string create(const FakeRuntime& runtime) {
    auto* const make = reinterpret_cast<CreateFactories*>(dlsym(library_, "CreateEpFactories"));
    size_t made = 0;
    const std::string message =
        messageOf(make("candela", &runtime.base(), &logger_, &factory_, 1, &made));
    EXPECT_EQ(made, message.empty() ? 1u : 0u);
    return message;
  }

  /// Makes the provider of a session with these options of it.
  std::string begin(const std::map<std::string, std::string>& options) {
    EXPECT_EQ(create(runtime_), "");
    OrtSessionOptions session;
    for (const auto& [key, value] : options)
      session.configuration[key.rfind("ep.", 0) == 0 ? key : "ep.candelaexecutionprovider." + key] =
          value;
    return messageOf(factory_->CreateEp(factory_, nullptr, nullptr, 0, &session, &logger_, &ep_));
  }

  std::vector<std::vector<const OrtNode*>> claimed(const OrtGraph& graph) {
    OrtEpGraphSupportInfo support;
    EXPECT_EQ(messageOf(ep_->GetCapability(ep_, &graph, &support)), "");
    return support.groups;
  }

  /// Compiles what was claimed, a graph of one group, as a fused node of its inputs and outputs.
  std::string compile(const OrtGraph& graph) {
    fused_ = {"fused_0", "fused", "", graph.inputs, graph.outputs, {}};
    const OrtGraph* graphs[] = {&graph};
    const OrtNode* nodes[] = {&fused_};
    return messageOf(ep_->Compile(ep_, graphs, nodes, 1, &info_, &context_));
  }

  std::string run(OrtKernelContext& context) {
    void* state = nullptr;
    EXPECT_EQ(messageOf(info_->CreateState(info_, nullptr, &state)), "");
    const std::string message = messageOf(info_->Compute(info_, state, &context));
    info_->ReleaseState(info_, state);
    return message;
  }

  void end() {
    if (info_) ep_->ReleaseNodeComputeInfos(ep_, &info_, 1);
    if (ep_) factory_->ReleaseEp(factory_, ep_);
    if (context_) {
      for (const OrtOpAttr* one : context_->attributes) delete one;
      delete context_;
    }
    if (factory_) reinterpret_cast<ReleaseFactory*>(dlsym(library_, "ReleaseEpFactory"))(factory_);
    info_ = nullptr;
    ep_ = nullptr;
    context_ = nullptr;
    factory_ = nullptr;
  }

  void TearDown() override {
    end();
    dlclose(library_);
  }

  /// y = Relu(x + c), which is Candela's, of `dims` with 4 at their end.
  OrtGraph sum(const std::vector<int64_t>& dims) {
    const auto* x = runtime_.value("x", dims);
    const auto* c = runtime_.constant("c", {1, 2, 3, 4});
    const auto* s = runtime_.value("s", dims);
    const auto* y = runtime_.value("y", dims);
    return {{x},
            {y},
            {c},
            {runtime_.node({"Add", {x, c}, {s}}), runtime_.node({"Relu", {s}, {y}})},
            "folder/sum.onnx"};
  }

  FakeRuntime runtime_;
  void* library_ = nullptr;
  OrtLogger logger_;
  OrtEpFactory* factory_ = nullptr;
  OrtEp* ep_ = nullptr;
  OrtNode fused_;
  OrtNodeComputeInfo* info_ = nullptr;
  OrtNode* context_ = nullptr;
};

TEST_F(OrtProvider, OffersTheHostAsItsDevice) {
  ASSERT_EQ(create(runtime_), "");
  EXPECT_STREQ(factory_->GetName(factory_), "CandelaExecutionProvider");
  EXPECT_STREQ(factory_->GetVersion(factory_), candela_version());
  const OrtHardwareDevice gpu{HardwareType::Gpu};
  const OrtHardwareDevice cpu{HardwareType::Cpu};
  const OrtHardwareDevice* all[] = {&gpu, &cpu};
  OrtEpDevice* devices[2] = {};
  size_t made = 0;
  ASSERT_EQ(messageOf(factory_->GetSupportedDevices(factory_, all, 2, devices, 2, &made)), "");
  ASSERT_EQ(made, 1u);
  const std::unique_ptr<OrtEpDevice> device(devices[0]);
  EXPECT_EQ(device->metadata.at("candela_version"), candela_version());
}

TEST_F(OrtProvider, RefusesAnOlderRelease) {
  const FakeRuntime old(22);
  EXPECT_THAT(create(old), HasSubstr("needs version 23 of the API of ONNX Runtime, of release "
                                     "1.23; this one is 1.22.0"));
}

TEST_F(OrtProvider, RefusesOptionsAndBackendsThatThereAreNot) {
  EXPECT_THAT(begin({{"backend", "nobody"}}), HasSubstr("nobody"));
  end();
  EXPECT_THAT(begin({{"bakcend", "template"}}), HasSubstr("option bakcend='template', expected"));
  end();
  EXPECT_THAT(begin({{"backend", "template"}, {"option.nothing", "1"}}), HasSubstr("nothing"));
  end();
  EXPECT_THAT(begin({{"threads", "0"}}), HasSubstr("expected 1 to 4096"));
  end();
  EXPECT_THAT(begin({{"require_native", "yes"}}), HasSubstr("expected 0 or 1"));
}

TEST_F(OrtProvider, RunsWhatItClaimed) {
  ASSERT_EQ(begin({{"backend", "template"}}), "");
  const OrtGraph graph = sum({2, 4});
  EXPECT_THAT(claimed(graph), ElementsAre(ElementsAre(graph.nodes[0], graph.nodes[1])));
  ASSERT_EQ(compile(graph), "");
  const auto x = FakeRuntime::tensor({2, 4}, {0, 0, 0, 0, -9, 1, -9, 1});
  OrtKernelContext context{{x.get()}, {}};
  ASSERT_EQ(run(context), "");
  EXPECT_THAT(FakeRuntime::floatsOf(*context.outputs.at(0)), ElementsAre(1, 2, 3, 4, 0, 3, 0, 5));
}

TEST_F(OrtProvider, RunsOpenDimsAsEachRunHasThem) {
  ASSERT_EQ(begin({{"backend", "template"}}), "");
  const OrtGraph graph = sum({-1, 4});
  EXPECT_EQ(claimed(graph).size(), 1u);
  ASSERT_EQ(compile(graph), "");
  for (const int64_t rows : {1, 3}) {
    const auto x =
        FakeRuntime::tensor({rows, 4}, std::vector<float>(static_cast<size_t>(rows) * 4, 1));
    OrtKernelContext context{{x.get()}, {}};
    ASSERT_EQ(run(context), "");
    EXPECT_THAT(context.outputs.at(0)->shape.dims, ElementsAre(rows, 4));
    EXPECT_EQ(FakeRuntime::floatsOf(*context.outputs[0]).back(), 5);
  }
}

TEST_F(OrtProvider, LeavesWhatItDoesNotKnowAndSaysWhy) {
  ASSERT_EQ(begin({{"backend", "template"}}), "");
  OrtGraph graph = sum({2, 4});
  const auto* y = graph.outputs[0];
  const auto* z = runtime_.value("z", {2, 4});
  graph.nodes.push_back(runtime_.node({"Mystery", {y}, {z}}));
  graph.outputs = {z};
  EXPECT_THAT(claimed(graph), ElementsAre(ElementsAre(graph.nodes[0], graph.nodes[1])));
  EXPECT_THAT(logger_.lines, testing::Contains(testing::AllOf(HasSubstr("leaves Mystery"),
                                                              HasSubstr("not supported"))));
}

TEST_F(OrtProvider, LeavesTypesThatItsTensorsHaveNot) {
  ASSERT_EQ(begin({{"backend", "template"}}), "");
  const auto* x = runtime_.value("x", {2}, ElementType::String);
  const auto* y = runtime_.value("y", {2});
  const OrtGraph graph{{x}, {y}, {}, {runtime_.node({"Identity", {x}, {y}})}, ""};
  EXPECT_THAT(claimed(graph), IsEmpty());
}

TEST_F(OrtProvider, SaysWhatIsWrongWithARun) {
  ASSERT_EQ(begin({{"backend", "template"}}), "");
  const OrtGraph graph = sum({2, 4});
  ASSERT_EQ(compile(graph), "");
  OrtKernelContext none;
  EXPECT_EQ(run(none), "input 'x' is missing");
  const auto x = FakeRuntime::tensor({3, 4}, std::vector<float>(12, 1));
  OrtKernelContext other{{x.get()}, {}};
  EXPECT_EQ(run(other), "input 'x' is f32[2,4] but f32[3,4] was given");
}

TEST_F(OrtProvider, KeepsCompiledPartsAndRefusesThoseOfOthers) {
  ASSERT_EQ(
      begin({{"backend", "template"}, {"ep.context_enable", "1"}, {"ep.context_embed_mode", "1"}}),
      "");
  const OrtGraph graph = sum({2, 4});
  ASSERT_EQ(compile(graph), "");
  ASSERT_NE(context_, nullptr);
  EXPECT_EQ(context_->op, "EPContext");
  std::map<std::string, std::string> texts;
  for (const OrtOpAttr* one : context_->attributes)
    if (one->type == AttributeType::String) texts[one->name] = one->content;
  end();

  /// The graph of the node, with other texts, asked and compiled in a session with this backend.
  const auto load = [&](const std::map<std::string, std::string>& changed, const char* backend) {
    std::vector<const OrtOpAttr*> attributes = {runtime_.attribute("embed_mode", 1)};
    auto all = texts;
    for (const auto& [name, text] : changed) all[name] = text;
    for (const auto& [name, text] : all) attributes.push_back(runtime_.attribute(name, text));
    const FakeNode node{"EPContext", graph.inputs, graph.outputs, attributes, "com.microsoft"};
    const OrtGraph loaded{graph.inputs, graph.outputs, {}, {runtime_.node(node)}, ""};
    std::map<std::string, std::string> options;
    if (*backend != '\0') options["backend"] = backend;
    EXPECT_EQ(begin(options), "");
    EXPECT_EQ(claimed(loaded).size(), 1u);
    return compile(loaded);
  };
  ASSERT_EQ(load({}, "template"), "");
  const auto x = FakeRuntime::tensor({2, 4}, std::vector<float>(8, 1));
  OrtKernelContext context{{x.get()}, {}};
  ASSERT_EQ(run(context), "");
  EXPECT_THAT(FakeRuntime::floatsOf(*context.outputs.at(0)), ElementsAre(2, 3, 4, 5, 2, 3, 4, 5));
  end();
  EXPECT_THAT(load({{"ep_sdk_version", "0.0.1"}}, "template"),
              HasSubstr("compiled by Candela 0.0.1"));
  end();
  EXPECT_THAT(load({}, "soft"),
              HasSubstr("compiled for backend 'template', and the session says 'soft'"));
  end();
  EXPECT_THAT(load({{"ep_cache_context", "no bundle"}}, "template"), HasSubstr("EPContext"));
  end();
  EXPECT_THAT(load({{"notes", "onnx, compiled for the shapes of each run"},
                    {"hardware_architecture", "/tmp/libacme.so"}},
                   ""),
              HasSubstr("names the plugin '/tmp/libacme.so' by a path, which no model may"));
}

TEST_F(OrtProvider, ReportsRunsToAProfiler) {
  runtime_ = FakeRuntime(25);
  ASSERT_EQ(begin({{"backend", "template"}}), "");
  ASSERT_EQ(ep_->ort_version_supported, 25u);
  OrtEpProfilerImpl* profiler = nullptr;
  ASSERT_EQ(messageOf(ep_->CreateProfiler(ep_, &profiler)), "");
  const OrtGraph graph = sum({2, 4});
  ASSERT_EQ(compile(graph), "");
  const auto x = FakeRuntime::tensor({2, 4}, std::vector<float>(8, 1));
  OrtKernelContext before{{x.get()}, {}};
  ASSERT_EQ(run(before), "");
  ASSERT_EQ(messageOf(profiler->StartProfiling(profiler, 5'000'000)), "");
  OrtKernelContext context{{x.get()}, {}};
  ASSERT_EQ(run(context), "");
  OrtProfilingEventsContainer container;
  ASSERT_EQ(messageOf(profiler->EndProfiling(profiler, &container)), "");
  std::vector<OrtProfilingEvent> runs;
  for (const OrtProfilingEvent& event : container.events)
    if (event.name == "candela: run") runs.push_back(event);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_GE(runs[0].timestamp, 5000);
  EXPECT_GT(container.events.size(), 1u);
  OrtKernelContext after{{x.get()}, {}};
  ASSERT_EQ(run(after), "");
  OrtProfilingEventsContainer rest;
  ASSERT_EQ(messageOf(profiler->EndProfiling(profiler, &rest)), "");
  EXPECT_THAT(rest.events, IsEmpty()); // a run of a session that is not profiled is not recorded
  profiler->Release(profiler);
}

TEST_F(OrtProvider, HasNoProfilerInAnOlderRelease) {
  ASSERT_EQ(begin({{"backend", "template"}}), "");
  EXPECT_EQ(ep_->ort_version_supported, 23u);
}

TEST_F(OrtProvider, HasPartsOfOneGraphAloneInAnOlderRelease) {
  ASSERT_EQ(begin({{"backend", "template"}}), "");
  const auto* o = runtime_.outer("o", {4});
  const auto* i = runtime_.value("i", {4});
  const OrtGraph nested{{}, {i}, {}, {runtime_.node({"Relu", {o}, {i}})}, ""};
  EXPECT_THAT(claimed(nested), IsEmpty());
  const OrtGraph graph = sum({2, 4});
  EXPECT_EQ(claimed(graph).size(), 1u);
  EXPECT_EQ(claimed(graph).size(), 1u); // it may be asked again
  const auto* a = runtime_.value("a", {4});
  const auto* b = runtime_.value("b", {4});
  const OrtGraph other{{a}, {b}, {}, {runtime_.node({"Relu", {a}, {b}})}, ""};
  EXPECT_THAT(claimed(other), IsEmpty());
  end();
  const FakeRuntime newer(25); // whose version all tables are of from now on
  ASSERT_EQ(begin({{"backend", "template"}}), "");
  EXPECT_EQ(claimed(nested).size(), 1u);
  EXPECT_EQ(claimed(graph).size(), 1u);
}

TEST(OrtPlacement, SaysWhoDoesMostOfANode) {
  const Placement placement = placementOf(R"({"nodes_detail": [
    {"node": "loop", "class": "host", "why": "a step of the run", "macs": 0, "elements": 9},
    {"node": "product", "class": "emulated", "why": "", "macs": 8, "elements": 4},
    {"node": "product", "class": "host", "why": "no row", "macs": 0, "elements": 9},
    {"node": "sums", "class": "native", "why": "native reduce", "macs": 0, "elements": 1},
    {"node": "sums", "class": "host", "why": "no row", "macs": 0, "elements": 9}]})");
  EXPECT_TRUE(placement.usesBackend);
  EXPECT_FALSE(placement.nodes.at("loop").isHosts());
  EXPECT_FALSE(placement.nodes.at("product").isHosts());
  EXPECT_TRUE(placement.nodes.at("sums").isHosts());
  EXPECT_EQ(placement.nodes.at("sums").why, "no row");
}

TEST(OrtPlacement, CountsWhatOnlyRenamesAsNeither) {
  const Placement placement = placementOf(R"({"nodes_detail": [
    {"node": "reshape", "class": "native", "why": "native: no work", "macs": 0, "elements": 9}]})");
  EXPECT_FALSE(placement.usesBackend);
}

} // namespace
} // namespace candela::ort
