#include <candela/candela.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <thread>

#include "core/support/file.h"

namespace candela {
namespace {

using sdk::Model;
using sdk::Options;
using testing::HasSubstr;
namespace fs = std::filesystem;

const std::string kDigits = CANDELA_SOURCE_DIR "/examples/digits/";
constexpr int64_t kImages = 360, kClasses = 10;

Options optionsFor(const std::string& backends) {
  Options options;
  options.backends = backends;
  options.dims = {"N=360"};
  return options;
}

candela_tensor_t asTensor(const Tensor& tensor) {
  candela_tensor_t out{};
  out.elem = static_cast<candela_elem_t>(tensor.elem);
  out.rank = static_cast<uint32_t>(tensor.dims.size());
  std::copy(tensor.dims.begin(), tensor.dims.end(), out.dims);
  out.data = const_cast<std::byte*>(tensor.bytes.data());
  out.bytes = tensor.sizeBytes();
  return out;
}

std::vector<float> scores(const Model& model) {
  static const Tensor images = std::move(readNpy(kDigits + "test_images.npy")).value();
  std::vector<float> result(kImages * kClasses, -1e30f);
  std::vector<candela_tensor_t> out(1);
  out[0].data = result.data();
  out[0].bytes = result.size() * sizeof(float);
  model.run({asTensor(images)}, out);
  return result;
}

/// The largest difference from ONNX Runtime's answer, over its largest score.
double error(const std::vector<float>& got) {
  static const Tensor expected = std::move(readNpy(kDigits + "expected_scores.npy")).value();
  double largest = 0, delta = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    largest = std::max(largest, std::abs(double(expected.as<float>()[i])));
    delta = std::max(delta, std::abs(double(got[i]) - expected.as<float>()[i]));
    if (std::isnan(got[i])) return HUGE_VAL;
  }
  return delta / largest;
}

std::string failureOf(const std::string& path, const Options& options, candela_status_t status) {
  try {
    Model::compile(path, options);
  } catch (const sdk::Error& e) {
    EXPECT_EQ(e.status(), status) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "compiled";
  return "";
}

class Backend : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, Backend,
                         testing::Values("soft", PLUGIN_template, PLUGIN_template_memory,
                                         PLUGIN_door2),
                         [](const auto& info) { return std::to_string(info.index); });

TEST_P(Backend, AgreesWithOnnxRuntime) {
  EXPECT_LT(error(scores(Model::compile(kDigits + "digits.onnx", optionsFor(GetParam())))), 2e-4);
}

size_t countOf(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST_P(Backend, TracesEachInstructionOnRequest) {
  Model model = Model::compile(kDigits + "digits.onnx", optionsFor(GetParam()));
  scores(model);
  EXPECT_EQ(countOf(model.traceJson(), "\"instr\""), 0u);
  model.profile(true);
  scores(model);
  const std::string trace = model.traceJson(), report = model.reportJson();
  const size_t at = report.find("\"instructions\": ");
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(countOf(trace, "\"instr\""), std::stoul(report.substr(at + 16)));
  EXPECT_THAT(trace, HasSubstr("\"node\": \"Conv_3\""));
  EXPECT_THAT(trace, HasSubstr("\"kind\": \"matmul\""));
  model.profile(false);
  scores(model);
  EXPECT_EQ(countOf(model.traceJson(), "\"instr\""), 0u);
}

// A device's first record may be of an engine that began last; its earliest one is where the
// execution began.
TEST(Profile, OfAnotherClockBeginsWithItsEarliestRecord) {
  Options options = optionsFor(PLUGIN_door2);
  options.options = {"clock=own"};
  Model model = Model::compile(kDigits + "digits.onnx", options);
  model.profile(true);
  scores(model);
  const std::string trace = model.traceJson();
  constexpr double kHourUs = 3.6e9;
  const std::string key = "\"ts\": ";
  double low = HUGE_VAL, high = 0;
  for (size_t at = trace.find(key); at != std::string::npos; at = trace.find(key, at + 1)) {
    low = std::min(low, std::stod(trace.substr(at + key.size())));
    high = std::max(high, std::stod(trace.substr(at + key.size())));
  }
  EXPECT_GT(high, low);
  EXPECT_LT(high - low, kHourUs);
}

TEST(Profile, LongerThanTheExecutionIsAnError) {
  Options options = optionsFor(PLUGIN_door2);
  options.options = {"clock=twice"};
  Model model = Model::compile(kDigits + "digits.onnx", options);
  scores(model);
  model.profile(true);
  try {
    scores(model);
    FAIL() << "records are dropped without a word";
  } catch (const sdk::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("records, there is room for "));
  }
}

TEST_P(Backend, AgreesWhenLoweredToPrimitives) {
  Options options = optionsFor(GetParam());
  options.toPrimitives = true;
  EXPECT_LT(error(scores(Model::compile(kDigits + "digits.onnx", options))), 2e-4);
}

TEST_P(Backend, BundleGivesTheSameBits) {
  const std::string path =
      (fs::temp_directory_path() / ("candela_sdk_" + std::to_string(getpid()) + ".cdb")).string();
  const Model model = Model::compile(kDigits + "digits.onnx", optionsFor(GetParam()));
  model.save(path);
  // A plugin outside of the plugin path is found by its name only when it was put there.
  if (std::string(GetParam()) != "soft")
    setenv("CANDELA_PLUGIN_PATH", fs::path(GetParam()).parent_path().c_str(), 1);
  EXPECT_EQ(scores(Model::load(path)), scores(model));
  fs::remove(path);
}

TEST_P(Backend, ManyThreadsGetTheSameBits) {
  const Model model = Model::compile(kDigits + "digits.onnx", optionsFor(GetParam()));
  const std::vector<float> expected = scores(model);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 3; ++i) EXPECT_EQ(scores(model), expected);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Placement, IsNativeWhereEverythingIs) {
  Options options = optionsFor(PLUGIN_template);
  options.requireNative = true;
  const std::string report = Model::compile(kDigits + "digits.onnx", options).reportJson();
  EXPECT_THAT(report, HasSubstr("\"emulated\": 0"));
  EXPECT_THAT(report, HasSubstr("\"host\": 0"));
}

TEST(Placement, IsEmulatedWhereOnlyMemoryIs) {
  const std::string report =
      Model::compile(kDigits + "digits.onnx", optionsFor(PLUGIN_template_memory)).reportJson();
  EXPECT_THAT(report, testing::AnyOf(HasSubstr("\"native\": 0"), HasSubstr("\"native\": 1")));
  Options options = optionsFor(PLUGIN_template_memory);
  options.requireNative = true;
  const std::string message = failureOf(kDigits + "digits.onnx", options, CANDELA_REFUSED);
  EXPECT_THAT(message, HasSubstr("are not native"));
  EXPECT_THAT(message, HasSubstr("Conv_0"));
}

// A backend that refuses every MATMUL when it compiles: its nodes go to the host, and the answer
// stays.
TEST(LateRefusal, MovesTheNodesElsewhere) {
  Options options = optionsFor(PLUGIN_door2);
  options.options = {"refuse=matmul"};
  const Model model = Model::compile(kDigits + "digits.onnx", options);
  EXPECT_LT(error(scores(model)), 2e-4);
  EXPECT_THAT(model.reportJson(), HasSubstr("\"on\": \"host\""));
}

TEST(SeveralBackends, TheFirstOneThatCanGetsTheNode) {
  const Model model = Model::compile(kDigits + "digits.onnx",
                                     optionsFor(std::string(PLUGIN_door2) + "," + PLUGIN_template));
  EXPECT_LT(error(scores(model)), 2e-4);
}

TEST(KeepValues, MakesEveryValueAnOutput) {
  Options options = optionsFor("soft");
  options.keepValues = true;
  const Model model = Model::compile(kDigits + "digits.onnx", options);
  EXPECT_GE(model.outputs().size(), 10u);
}

TEST(BindAtRun, TakesTheDimsOfEachRunsInputs) {
  Options options = optionsFor(PLUGIN_template);
  options.dims.clear();
  options.bindAtRun = true;
  const Model model = Model::compile(kDigits + "digits.onnx", options);
  EXPECT_EQ(model.inputs()[0].dims, (std::vector<int64_t>{-1, 1, 8, 8}));
  EXPECT_FALSE(model.outputs()[0].isKnown());
  const Tensor images = std::move(readNpy(kDigits + "test_images.npy")).value();
  const Tensor expected = std::move(readNpy(kDigits + "expected_scores.npy")).value();
  for (const int64_t count : {3, 1, 3}) {
    candela_tensor_t in = asTensor(images);
    in.dims[0] = count;
    std::vector<candela_tensor_t> out(1); // nowhere: the library allocates
    model.run({in}, out);
    ASSERT_EQ(out[0].rank, 2u);
    EXPECT_EQ(out[0].dims[0], count);
    ASSERT_EQ(out[0].bytes, count * kClasses * sizeof(float));
    for (int64_t i = 0; i < count * kClasses; ++i)
      EXPECT_NEAR(static_cast<const float*>(out[0].data)[i], expected.as<float>()[i], 1e-3);
    candela_free_data(out[0].data);
  }
  candela_tensor_t wrong = asTensor(images);
  wrong.dims[2] = 4;
  wrong.dims[3] = 16;
  std::vector<candela_tensor_t> out(1);
  try {
    model.run({wrong}, out);
    ADD_FAILURE() << "ran";
  } catch (const sdk::Error& e) {
    EXPECT_STREQ(e.what(), "input 'images' is f32[?,1,8,8] but f32[360,1,4,16] was given");
  }
}

TEST(BadRequest, NamesWhatIsWrong) {
  const std::string digits = kDigits + "digits.onnx";
  EXPECT_THAT(failureOf("absent.onnx", optionsFor("soft"), CANDELA_NOT_FOUND),
              HasSubstr("absent.onnx"));
  EXPECT_THAT(failureOf(digits, optionsFor("nobody"), CANDELA_NOT_FOUND),
              HasSubstr("no backend named 'nobody'"));
  EXPECT_THAT(failureOf(digits, optionsFor("./absent.so"), CANDELA_NOT_FOUND),
              HasSubstr("./absent.so"));
  EXPECT_THAT(failureOf(digits, optionsFor(PLUGIN_not_a_plugin), CANDELA_INCOMPATIBLE),
              HasSubstr("not a backend plugin"));
  EXPECT_THAT(failureOf(digits, optionsFor(PLUGIN_wrong_abi), CANDELA_INCOMPATIBLE),
              HasSubstr("9.0"));
  EXPECT_THAT(failureOf(digits, optionsFor("reference,soft"), CANDELA_INVALID_ARGUMENT),
              HasSubstr("alone"));
  Options options = optionsFor("soft");
  options.dims = {"N"};
  EXPECT_THAT(failureOf(digits, options, CANDELA_INVALID_ARGUMENT), HasSubstr("'N'"));
  options.dims = {"N=2", "M=3"};
  EXPECT_THAT(failureOf(digits, options, CANDELA_INVALID_ARGUMENT), HasSubstr("M"));
  options.dims = {};
  EXPECT_THAT(failureOf(digits, options, CANDELA_INVALID_ARGUMENT), HasSubstr("--dim N="));
  options = optionsFor(PLUGIN_template);
  options.options = {"colour=blue"};
  EXPECT_THAT(failureOf(digits, options, CANDELA_INVALID_ARGUMENT), HasSubstr("colour"));
}

TEST(BadRequest, InputsAreChecked) {
  const Model model = Model::compile(kDigits + "digits.onnx", optionsFor("soft"));
  std::vector<float> buffer(kImages * 64);
  candela_tensor_t in = asTensor(Tensor{Elem::f32_, {kImages, 1, 8, 8}, {}});
  in.data = buffer.data();
  in.bytes = buffer.size() * 4;
  std::vector<float> result(kImages * kClasses);
  std::vector<candela_tensor_t> out(1);
  out[0].data = result.data();
  out[0].bytes = result.size() * 4;
  const auto message = [&](const candela_tensor_t& tensor) -> std::string {
    try {
      model.run({tensor}, out);
    } catch (const sdk::Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(message(in), "");
  candela_tensor_t wrong = in;
  wrong.dims[0] = 3;
  EXPECT_EQ(message(wrong), "input 'images' is f32[360,1,8,8] but f32[3,1,8,8] was given");
  wrong = in;
  wrong.elem = CANDELA_I32;
  EXPECT_THAT(message(wrong), HasSubstr("i32[360,1,8,8]"));
  wrong = in;
  wrong.bytes = 12;
  EXPECT_THAT(message(wrong), HasSubstr("12"));
  wrong = in;
  wrong.rank = 99;
  EXPECT_THAT(message(wrong), HasSubstr("99"));
  out[0].bytes = 4;
  EXPECT_THAT(message(in), HasSubstr("output 'scores' needs"));
}

} // namespace
} // namespace candela
