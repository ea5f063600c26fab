// Outputs that are inputs of the next run: where they lie, when they are copied, what is refused.
#include <candela/candela.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "core/compiler/driver/pipeline.h"

namespace candela {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

/// sum + x, and twice of it.
constexpr const char* kText =
    R"(graph @g(%sum: f32[4], %x: f32[4]) -> (%new: f32[4], %twice: f32[4], %half: f16[4], %was: f32[4]) {
  %new = add %sum, %x
  %twice = add %new, %new
  %half = cast %new {to = f16}
  %was = reshape %sum {shape = [4]}
}
)";

/// Written once for each test.
std::string modelFile() {
  const auto* info = testing::UnitTest::GetInstance()->current_test_info();
  std::string name =
      std::string("states_") + info->name() + "_" + std::to_string(getpid()) + ".cdl";
  for (char& c : name) c = c == '/' ? '_' : c;
  const std::string path = (fs::temp_directory_path() / name).string();
  std::ofstream(path) << kText;
  return path;
}

std::unique_ptr<runtime::session::Session> sessionOn(const std::string& backend,
                                                     const std::vector<std::string>& states) {
  Diagnostics diagnostics;
  auto ir = driver::parseIr(kText, "states.cdl", diagnostics);
  EXPECT_TRUE(ir) << ir.status().message();
  std::vector<std::shared_ptr<runtime::plugin::Device>> devices;
  if (backend != "soft") {
    auto plugin = runtime::plugin::findPlugin(backend);
    EXPECT_TRUE(plugin) << plugin.status().message();
    devices.push_back(std::move((*plugin)->open(0, {})).value());
  }
  auto session = driver::compile(std::get<graph::Graph>(std::move(*ir)), "states.cdl", devices);
  EXPECT_TRUE(session) << session.status().message();
  const Status bound = (*session)->bindStates(states);
  EXPECT_TRUE(bound) << bound.message();
  return std::move(*session);
}

Tensor four(float value) {
  return Tensor::of<float>(Elem::f32_, {4}, {value, value, value, value});
}

class Places : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, Places,
                         testing::Values("soft", PLUGIN_template, PLUGIN_template_memory,
                                         PLUGIN_door2),
                         [](const auto& info) { return std::to_string(info.index); });

/// A state changes between two rooms, each of which one run writes and the next one reads where it
/// is.
TEST_P(Places, AreNotCopiedBetweenRuns) {
  const auto session = sessionOn(GetParam(), {"sum=new"});
  const void* rooms[4] = {};
  for (int run = 0; run < 4; ++run) {
    runtime::session::RunStats stats;
    const std::vector<Tensor> inputs{Tensor(), four(1)};
    const auto outputs = session->run(inputs, &stats);
    ASSERT_TRUE(outputs) << outputs.status().message();
    EXPECT_EQ(stats.stateBytes, 0u);
    EXPECT_EQ((*outputs)[0].as<float>()[3], static_cast<float>(run + 1));
    EXPECT_EQ((*outputs)[1].as<float>()[0], static_cast<float>(2 * run + 2));
    rooms[run] = (*outputs)[0].bytes.data();
  }
  EXPECT_NE(rooms[0], rooms[1]);
  EXPECT_EQ(rooms[0], rooms[2]);
  EXPECT_EQ(rooms[1], rooms[3]);
}

/// An input that goes straight to an output, and one that is given anew.
TEST_P(Places, TakeWhatIsGivenAndWhatIsPassedOn) {
  const auto session = sessionOn(GetParam(), {"sum=new", "x=was"});
  const auto run = [&](const Tensor& sum, const Tensor& x) {
    const auto outputs = session->run(std::vector<Tensor>{sum, x});
    EXPECT_TRUE(outputs) << outputs.status().message();
    return outputs ? std::pair((*outputs)[0].as<float>()[0], (*outputs)[3].as<float>()[0])
                   : std::pair(-1.0f, -1.0f);
  };
  EXPECT_EQ(run({}, four(1)), std::pair(1.0f, 0.0f)); // zero at first
  EXPECT_EQ(run({}, {}), std::pair(1.0f, 1.0f));      // sum 1, x 0
  EXPECT_EQ(run({}, {}), std::pair(2.0f, 1.0f));      // sum 1, x 1
  EXPECT_EQ(run(four(5), {}), std::pair(6.0f, 5.0f));
  EXPECT_EQ(run({}, {}), std::pair(11.0f, 6.0f));
}

std::string refusal(const std::vector<std::string>& states) {
  sdk::Options options;
  options.states = states;
  const std::string path = modelFile();
  std::string message = "compiled";
  try {
    sdk::Model::compile(path, options);
  } catch (const sdk::Error& error) {
    EXPECT_EQ(error.status(), CANDELA_INVALID_ARGUMENT);
    message = error.what();
  }
  fs::remove(path);
  return message;
}

TEST(States, NameWhatDoesNotFit) {
  EXPECT_THAT(refusal({"sum=half"}),
              HasSubstr("state 'sum=half': input 'sum' is f32[4] but output 'half' is f16[4]"));
  EXPECT_THAT(refusal({"sum=old"}), HasSubstr("state 'sum=old' is not of the form INPUT=OUTPUT; "
                                              "inputs are sum, x, outputs new, twice, half"));
  EXPECT_THAT(refusal({"sum"}), HasSubstr("state 'sum' is not of the form"));
  EXPECT_THAT(refusal({"sum=new", "x=new"}),
              HasSubstr("the output 'new' is in another state already"));
  EXPECT_THAT(refusal({"sum=new", "sum=twice"}),
              HasSubstr("the input 'sum' is in another state already"));
}

/// Of a caller that was built against a header without states.
TEST(States, AreNotReadBehindAnOlderStruct) {
  const std::string path = modelFile();
  candela_options_t options = CANDELA_OPTIONS_INIT;
  options.struct_size = offsetof(candela_options_t, states);
  const char* const wrong[] = {"no such state", nullptr};
  options.states = wrong;
  candela_model_t* model = nullptr;
  EXPECT_EQ(candela_compile(path.c_str(), &options, &model, nullptr, 0), CANDELA_OK);
  candela_free(model);
  fs::remove(path);
}

/// One step through the embedding API; the state is seen when `sum` is not null.
void step(const sdk::Model& model, float x, float* sum) {
  float in[4] = {x, x, x, x}, twice[4], was[4];
  uint16_t half[4];
  std::vector<candela_tensor_t> inputs(2), outputs(4);
  inputs[1] = {CANDELA_F32, 1, {4}, in, sizeof(in)};
  if (sum) outputs[0] = {CANDELA_F32, 1, {4}, sum, 4 * sizeof(float)};
  outputs[1] = {CANDELA_F32, 1, {4}, twice, sizeof(twice)};
  outputs[2] = {CANDELA_F16, 1, {4}, half, sizeof(half)};
  outputs[3] = {CANDELA_F32, 1, {4}, was, sizeof(was)};
  model.run(inputs, outputs);
  EXPECT_EQ(outputs[0].data, sum);
  EXPECT_EQ(outputs[0].dims[0], 4);
}

class Embedded : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, Embedded, testing::Values("reference", "soft", PLUGIN_template),
                         [](const auto& info) { return std::to_string(info.index); });

TEST_P(Embedded, ThreadsTakeTurns) {
  sdk::Options options;
  options.backends = GetParam();
  options.states = {"sum=new"};
  const std::string path = modelFile();
  const sdk::Model model = sdk::Model::compile(path, options);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i) step(model, 1, nullptr);
    });
  for (std::thread& thread : threads) thread.join();
  float sum[4];
  step(model, 0, sum);
  EXPECT_EQ(sum[0], 100.0f);
  fs::remove(path);
}

TEST(States, AreBoundInTheBundleAndZeroAgain) {
  sdk::Options options;
  options.states = {"sum=new"};
  const std::string path = modelFile(), stored = path + ".cdb";
  const sdk::Model compiled = sdk::Model::compile(path, options);
  step(compiled, 3, nullptr);
  compiled.save(stored);
  const sdk::Model loaded = sdk::Model::load(stored);
  EXPECT_THAT(loaded.reportJson(), HasSubstr("\"input\": \"sum\""));
  float sum[4];
  step(loaded, 1, sum);
  EXPECT_EQ(sum[0], 1.0f);
  step(loaded, 1, sum);
  EXPECT_EQ(sum[0], 2.0f);
  fs::remove(path);
  fs::remove(stored);
}

} // namespace
} // namespace candela
