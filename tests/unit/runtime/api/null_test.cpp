// The embedding API without what it needs: each function answers for each of its arguments. The
// last test holds the list of functions to the header, so that a new one is asked too.
#include <candela/candela.h>
#include <candela/candela.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>

namespace candela {
namespace {

const std::string kDigits = CANDELA_SOURCE_DIR "/examples/digits/digits.onnx";

struct Free {
  void operator()(candela_model_t* model) const { candela_free(model); }
};
using Model = std::unique_ptr<candela_model_t, Free>;

Model digits() {
  const char* const dims[] = {"N=1", nullptr};
  candela_options_t options = CANDELA_OPTIONS_INIT;
  options.dims = dims;
  candela_model_t* model = nullptr;
  char error[256] = "";
  EXPECT_EQ(candela_compile(kDigits.c_str(), &options, &model, error, sizeof error), CANDELA_OK)
      << error;
  return Model(model);
}

/// A call that returns a status and takes the buffer for the message last.
using Call = std::function<candela_status_t(char* error, size_t size)>;

/// It refuses the call, whatever buffer it has for the message.
void expectRefused(const char* what, const Call& call) {
  char error[256] = "";
  EXPECT_EQ(call(error, sizeof error), CANDELA_INVALID_ARGUMENT) << what;
  EXPECT_STRNE(error, "") << what;
  EXPECT_EQ(call(nullptr, 0), CANDELA_INVALID_ARGUMENT) << what;
  EXPECT_EQ(call(nullptr, sizeof error), CANDELA_INVALID_ARGUMENT) << what;
  error[0] = 'x';
  EXPECT_EQ(call(error, 0), CANDELA_INVALID_ARGUMENT) << what;
  EXPECT_EQ(error[0], 'x') << what;
}

std::set<std::string> asked; ///< functions that a test below calls without an argument

TEST(Null, OfWhatMakesAModel) {
  asked.insert({"candela_compile", "candela_load"});
  candela_model_t* model = nullptr;
  expectRefused("compile: path",
                [&](char* e, size_t n) { return candela_compile(nullptr, nullptr, &model, e, n); });
  expectRefused("compile: model", [&](char* e, size_t n) {
    return candela_compile(kDigits.c_str(), nullptr, nullptr, e, n);
  });
  expectRefused("load: path",
                [&](char* e, size_t n) { return candela_load(nullptr, &model, e, n); });
  expectRefused("load: model",
                [&](char* e, size_t n) { return candela_load("x.cdb", nullptr, e, n); });
  // Without options there are defaults: what is refused here is the open dim.
  EXPECT_NE(candela_compile(kDigits.c_str(), nullptr, &model, nullptr, 0), CANDELA_OK);
  EXPECT_EQ(model, nullptr);
}

TEST(Null, ModelIsNoneAfterEachFailure) {
  auto* const before = reinterpret_cast<candela_model_t*>(&asked);
  candela_model_t* model = before;
  EXPECT_NE(candela_compile(nullptr, nullptr, &model, nullptr, 0), CANDELA_OK);
  EXPECT_EQ(model, nullptr);
  model = before;
  EXPECT_NE(candela_load("there is no such file", &model, nullptr, 0), CANDELA_OK);
  EXPECT_EQ(model, nullptr);
}

TEST(Null, OfWhatTakesAModel) {
  asked.insert({"candela_save", "candela_free", "candela_input_count", "candela_output_count",
                "candela_input", "candela_output", "candela_report_json", "candela_profile",
                "candela_trace_json"});
  const Model model = digits();
  expectRefused("save: model",
                [&](char* e, size_t n) { return candela_save(nullptr, "x.cdb", e, n); });
  expectRefused("save: path",
                [&](char* e, size_t n) { return candela_save(model.get(), nullptr, e, n); });
  candela_free(nullptr);
  EXPECT_EQ(candela_input_count(nullptr), 0u);
  EXPECT_EQ(candela_output_count(nullptr), 0u);
  candela_tensor_t description{};
  for (const auto port : {candela_input, candela_output}) {
    EXPECT_EQ(port(nullptr, 0, &description), nullptr);
    EXPECT_EQ(port(nullptr, 0, nullptr), nullptr);
    EXPECT_NE(port(model.get(), 0, nullptr), nullptr) << "the name alone is wanted";
    EXPECT_EQ(port(model.get(), UINT32_MAX, &description), nullptr);
  }
  EXPECT_EQ(candela_report_json(nullptr), nullptr);
  candela_profile(nullptr, 1);
  EXPECT_EQ(candela_trace_json(nullptr), nullptr);
}

TEST(Null, OfARun) {
  asked.insert("candela_run");
  const Model model = digits();
  candela_tensor_t in{}, out{};
  EXPECT_STREQ(candela_input(model.get(), 0, &in), "images");
  std::vector<std::byte> data(in.bytes);
  in.data = data.data();
  const auto run = [](const candela_model_t* m, const candela_tensor_t* inputs, uint32_t inputCount,
                      candela_tensor_t* outputs, uint32_t outputCount) -> Call {
    return [=](char* e, size_t n) {
      return candela_run(m, inputs, inputCount, outputs, outputCount, e, n);
    };
  };
  expectRefused("model", run(nullptr, &in, 1, &out, 1));
  expectRefused("inputs", run(model.get(), nullptr, 1, &out, 1));
  expectRefused("outputs", run(model.get(), &in, 1, nullptr, 1));
  expectRefused("no inputs", run(model.get(), nullptr, 0, &out, 1));
  expectRefused("no outputs", run(model.get(), &in, 1, nullptr, 0));
  candela_tensor_t empty = in;
  empty.data = nullptr;
  expectRefused("data of an input", run(model.get(), &empty, 1, &out, 1));
  candela_tensor_t nowhere{};
  nowhere.bytes = 1 << 20;
  expectRefused("data of an output", run(model.get(), &in, 1, &nowhere, 1));
  EXPECT_EQ(candela_run(model.get(), &in, 1, &out, 1, nullptr, 0), CANDELA_OK);
  EXPECT_NE(out.data, nullptr);
  candela_free_data(out.data);
}

TEST(Null, OfWhatNeedsNothing) {
  asked.insert({"candela_version", "candela_backends_json", "candela_free_text",
                "candela_free_data", "candela_set_threads", "candela_threads"});
  EXPECT_EQ(candela_set_threads(3), CANDELA_OK);
  EXPECT_EQ(candela_set_threads(4097), CANDELA_INVALID_ARGUMENT);
  EXPECT_EQ(candela_threads(), 3u);
  EXPECT_EQ(candela_set_threads(0), CANDELA_OK);
  EXPECT_GE(candela_threads(), 1u);
  EXPECT_STRNE(candela_version(), "");
  char* const backends = candela_backends_json(nullptr);
  EXPECT_NE(backends, nullptr);
  candela_free_text(backends);
  candela_free_text(nullptr);
  candela_free_data(nullptr);
}

TEST(Null, OptionsWithoutAnything) {
  candela_options_t options{}; // struct_size 0: of no version
  candela_model_t* model = nullptr;
  char error[512] = "";
  EXPECT_NE(candela_compile(kDigits.c_str(), &options, &model, error, sizeof error), CANDELA_OK);
  EXPECT_THAT(error, testing::HasSubstr("N"));
}

TEST(Null, ModelThatWasMovedAwayAnswers) {
  sdk::Options options;
  options.dims = {"N=1"};
  sdk::Model model = sdk::Model::compile(kDigits, options);
  const sdk::Model other = std::move(model);
  EXPECT_EQ(model.reportJson(), "");
  EXPECT_EQ(model.traceJson(), "");
  EXPECT_TRUE(model.inputs().empty());
  EXPECT_TRUE(model.outputs().empty());
  model.profile(true);
  std::vector<candela_tensor_t> outputs;
  EXPECT_THROW(model.run({}, outputs), sdk::Error);
}

// Nothing passes a C interface, be it an exception of no class.
TEST(Progress, MayThrowAnything) {
  candela_options_t options = CANDELA_OPTIONS_INIT;
  const char* const dims[] = {"N=1", nullptr};
  options.dims = dims;
  options.progress = [](void*, const char*, double) { throw 42; };
  candela_model_t* model = nullptr;
  char error[256] = "";
  EXPECT_EQ(candela_compile(kDigits.c_str(), &options, &model, error, sizeof error),
            CANDELA_INTERNAL);
  EXPECT_EQ(model, nullptr);
}

// Runs last, by its place in this file.
TEST(NullAll, FunctionsOfTheHeaderAreAsked) {
  std::ifstream file(CANDELA_SOURCE_DIR "/include/candela/candela.h");
  const std::string header((std::istreambuf_iterator<char>(file)), {});
  const std::regex declared(R"(CANDELA_API [^;(]*?(candela_\w+)\()");
  std::set<std::string> functions;
  for (std::sregex_iterator at(header.begin(), header.end(), declared), end; at != end; ++at)
    functions.insert((*at)[1].str());
  EXPECT_GE(functions.size(), 16u);
  EXPECT_EQ(functions, asked);
}

} // namespace
} // namespace candela
