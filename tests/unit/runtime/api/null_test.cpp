// The embedding API without what it needs: each function answers for each of its arguments. The
// last test holds the list of functions to the headers, so that a new one is asked too.
#include <candela/async.h>
#include <candela/candela.hpp>
#include <candela/graph.h>
#include <candela/train.h>
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
  asked.insert({"candela_compile_memory", "candela_load_memory"});
  expectRefused("compile_memory: data", [&](char* e, size_t n) {
    return candela_compile_memory(nullptr, 1, "x.onnx", nullptr, &model, e, n);
  });
  expectRefused("compile_memory: name", [&](char* e, size_t n) {
    return candela_compile_memory("", 1, nullptr, nullptr, &model, e, n);
  });
  expectRefused("load_memory: data", [&](char* e, size_t n) {
    return candela_load_memory(nullptr, 1, "x", &model, e, n);
  });
  expectRefused("load_memory: model",
                [&](char* e, size_t n) { return candela_load_memory("", 1, "x", nullptr, e, n); });
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

TEST(Null, OfDevicesAndBuffers) {
  asked.insert({"candela_devices_json", "candela_device_open", "candela_device_close",
                "candela_device_properties", "candela_device_memory", "candela_buffer_create",
                "candela_buffer_wrap", "candela_buffer_free", "candela_buffer_bytes",
                "candela_buffer_data", "candela_buffer_write", "candela_buffer_read",
                "candela_buffer_copy", "candela_buffer_from_dlpack", "candela_buffer_to_dlpack"});
  char* const devices = candela_devices_json(nullptr);
  EXPECT_NE(devices, nullptr);
  candela_free_text(devices);
  candela_device_t* device = nullptr;
  candela_buffer_t* buffer = nullptr;
  candela_tensor_t description{};
  char byte = 0;
  expectRefused("device_open: name", [&](char* e, size_t n) {
    return candela_device_open(nullptr, nullptr, &device, e, n);
  });
  expectRefused("device_open: device", [&](char* e, size_t n) {
    return candela_device_open("soft", nullptr, nullptr, e, n);
  });
  candela_device_close(nullptr);
  EXPECT_EQ(candela_device_properties(nullptr, nullptr), CANDELA_INVALID_ARGUMENT);
  EXPECT_EQ(candela_device_memory(nullptr, nullptr), CANDELA_INVALID_ARGUMENT);
  expectRefused("buffer_create: buffer", [&](char* e, size_t n) {
    return candela_buffer_create(nullptr, 1, nullptr, e, n);
  });
  expectRefused("buffer_wrap: data", [&](char* e, size_t n) {
    return candela_buffer_wrap(nullptr, 1, nullptr, nullptr, &buffer, e, n);
  });
  candela_buffer_free(nullptr);
  EXPECT_EQ(candela_buffer_bytes(nullptr), 0u);
  EXPECT_EQ(candela_buffer_data(nullptr), nullptr);
  expectRefused("buffer_write: buffer", [&](char* e, size_t n) {
    return candela_buffer_write(nullptr, 0, &byte, 1, e, n);
  });
  expectRefused("buffer_read: buffer",
                [&](char* e, size_t n) { return candela_buffer_read(nullptr, 0, &byte, 1, e, n); });
  expectRefused("buffer_copy: buffers", [&](char* e, size_t n) {
    return candela_buffer_copy(nullptr, 0, nullptr, 0, 1, e, n);
  });
  expectRefused("buffer_from_dlpack: tensor", [&](char* e, size_t n) {
    return candela_buffer_from_dlpack(nullptr, &description, &buffer, e, n);
  });
  expectRefused("buffer_to_dlpack: buffer", [&](char* e, size_t n) {
    return candela_buffer_to_dlpack(nullptr, &description, nullptr, e, n);
  });
}

TEST(Null, OfSessionsAndRequests) {
  asked.insert({"candela_timeline_create", "candela_timeline_free", "candela_timeline_value",
                "candela_timeline_signal", "candela_timeline_fail", "candela_timeline_wait",
                "candela_session_create", "candela_session_free", "candela_submit",
                "candela_request_wait", "candela_request_done", "candela_request_cancel",
                "candela_request_output", "candela_request_free", "candela_session_stats_json",
                "candela_session_trace_json"});
  EXPECT_EQ(candela_timeline_create(nullptr), CANDELA_INVALID_ARGUMENT);
  candela_timeline_free(nullptr);
  EXPECT_EQ(candela_timeline_value(nullptr), 0u);
  EXPECT_EQ(candela_timeline_signal(nullptr, 1), CANDELA_INVALID_ARGUMENT);
  EXPECT_EQ(candela_timeline_fail(nullptr, CANDELA_IO, ""), CANDELA_INVALID_ARGUMENT);
  expectRefused("timeline_wait",
                [](char* e, size_t n) { return candela_timeline_wait(nullptr, 1, 0, e, n); });
  candela_session_t* session = nullptr;
  expectRefused("session_create: models", [&](char* e, size_t n) {
    return candela_session_create(nullptr, 1, nullptr, &session, e, n);
  });
  candela_model_t* const none[] = {nullptr};
  expectRefused("session_create: a model", [&](char* e, size_t n) {
    return candela_session_create(none, 1, nullptr, &session, e, n);
  });
  candela_session_free(nullptr);
  expectRefused("submit: session",
                [](char* e, size_t n) { return candela_submit(nullptr, nullptr, nullptr, e, n); });
  expectRefused("request_wait",
                [](char* e, size_t n) { return candela_request_wait(nullptr, 0, e, n); });
  EXPECT_EQ(candela_request_done(nullptr), 0);
  candela_request_cancel(nullptr);
  EXPECT_EQ(candela_request_output(nullptr, 0, nullptr), CANDELA_INVALID_ARGUMENT);
  candela_request_free(nullptr);
  EXPECT_EQ(candela_session_stats_json(nullptr), nullptr);
  EXPECT_EQ(candela_session_trace_json(nullptr), nullptr);
}

TEST(Null, OfGraphs) {
  asked.insert({"candela_graph_create", "candela_graph_free", "candela_graph_input",
                "candela_graph_constant", "candela_graph_op", "candela_graph_output",
                "candela_graph_type", "candela_graph_verify", "candela_graph_print",
                "candela_compile_graph"});
  EXPECT_EQ(candela_graph_create("g", nullptr), CANDELA_INVALID_ARGUMENT);
  candela_graph_free(nullptr);
  candela_value_t value = 0;
  expectRefused("graph_input", [&](char* e, size_t n) {
    return candela_graph_input(nullptr, "x", nullptr, &value, e, n);
  });
  expectRefused("graph_constant", [&](char* e, size_t n) {
    return candela_graph_constant(nullptr, "x", nullptr, &value, e, n);
  });
  expectRefused("graph_op", [&](char* e, size_t n) {
    return candela_graph_op(nullptr, "relu", nullptr, 0, nullptr, nullptr, &value, 1, e, n);
  });
  expectRefused("graph_output",
                [](char* e, size_t n) { return candela_graph_output(nullptr, 1, nullptr, e, n); });
  EXPECT_EQ(candela_graph_type(nullptr, 1, nullptr), CANDELA_INVALID_ARGUMENT);
  expectRefused("graph_verify",
                [](char* e, size_t n) { return candela_graph_verify(nullptr, e, n); });
  EXPECT_EQ(candela_graph_print(nullptr), nullptr);
  candela_model_t* model = nullptr;
  expectRefused("compile_graph", [&](char* e, size_t n) {
    return candela_compile_graph(nullptr, nullptr, &model, e, n);
  });
}

TEST(Null, OfGradients) {
  asked.insert(
      {"candela_graph_gradients", "candela_compile_gradients", "candela_compile_gradients_memory"});
  candela_value_t value = 0;
  candela_model_t* model = nullptr;
  expectRefused("graph_gradients: graph", [&](char* e, size_t n) {
    return candela_graph_gradients(nullptr, 1, 0, &value, 1, &value, e, n);
  });
  candela_graph_t* graph = nullptr;
  ASSERT_EQ(candela_graph_create(nullptr, &graph), CANDELA_OK);
  expectRefused("graph_gradients: wrt", [&](char* e, size_t n) {
    return candela_graph_gradients(graph, 1, 0, nullptr, 1, &value, e, n);
  });
  expectRefused("graph_gradients: gradients", [&](char* e, size_t n) {
    return candela_graph_gradients(graph, 1, 0, &value, 1, nullptr, e, n);
  });
  expectRefused("graph_gradients: of", [&](char* e, size_t n) {
    return candela_graph_gradients(graph, 0, 0, nullptr, 0, nullptr, e, n);
  });
  candela_graph_free(graph);
  expectRefused("compile_gradients: path", [&](char* e, size_t n) {
    return candela_compile_gradients(nullptr, nullptr, nullptr, nullptr, &model, e, n);
  });
  expectRefused("compile_gradients: model", [&](char* e, size_t n) {
    return candela_compile_gradients(kDigits.c_str(), nullptr, nullptr, nullptr, nullptr, e, n);
  });
  expectRefused("compile_gradients_memory: data", [&](char* e, size_t n) {
    return candela_compile_gradients_memory(nullptr, 1, "x.onnx", nullptr, nullptr, nullptr, &model,
                                            e, n);
  });
}

TEST(Null, OfTraining) {
  asked.insert({"candela_trainer_create", "candela_trainer_create_memory", "candela_trainer_free",
                "candela_trainer_input_count", "candela_trainer_input",
                "candela_trainer_parameter_count", "candela_trainer_parameter",
                "candela_trainer_step", "candela_trainer_read", "candela_trainer_save",
                "candela_trainer_report_json"});
  candela_trainer_t* trainer = nullptr;
  expectRefused("trainer_create: path", [&](char* e, size_t n) {
    return candela_trainer_create(nullptr, nullptr, nullptr, &trainer, e, n);
  });
  expectRefused("trainer_create: trainer", [](char* e, size_t n) {
    return candela_trainer_create(kDigits.c_str(), nullptr, nullptr, nullptr, e, n);
  });
  expectRefused("trainer_create_memory: data", [&](char* e, size_t n) {
    return candela_trainer_create_memory(nullptr, 1, "x.onnx", nullptr, nullptr, &trainer, e, n);
  });
  expectRefused("trainer_create_memory: name", [&](char* e, size_t n) {
    return candela_trainer_create_memory("", 1, nullptr, nullptr, nullptr, &trainer, e, n);
  });
  candela_trainer_free(nullptr);
  candela_tensor_t tensor{};
  EXPECT_EQ(candela_trainer_input_count(nullptr), 0u);
  EXPECT_EQ(candela_trainer_input(nullptr, 0, &tensor), nullptr);
  EXPECT_EQ(candela_trainer_parameter_count(nullptr), 0u);
  EXPECT_EQ(candela_trainer_parameter(nullptr, 0, nullptr), nullptr);
  EXPECT_EQ(candela_trainer_report_json(nullptr), nullptr);
  double loss = 0;
  expectRefused("trainer_step: trainer", [&](char* e, size_t n) {
    return candela_trainer_step(nullptr, &tensor, 1, 0, &loss, e, n);
  });
  expectRefused("trainer_read: trainer",
                [&](char* e, size_t n) { return candela_trainer_read(nullptr, 0, &tensor, e, n); });
  expectRefused("trainer_save: trainer",
                [](char* e, size_t n) { return candela_trainer_save(nullptr, "x", e, n); });
  candela_options_t options = CANDELA_OPTIONS_INIT;
  const char* const dims[] = {"N=1", nullptr};
  options.dims = dims;
  ASSERT_EQ(candela_trainer_create(kDigits.c_str(), nullptr, &options, &trainer, nullptr, 0),
            CANDELA_OK);
  expectRefused("trainer_step: inputs", [&](char* e, size_t n) {
    return candela_trainer_step(trainer, nullptr, 2, 0, &loss, e, n);
  });
  expectRefused("trainer_step: loss", [&](char* e, size_t n) {
    return candela_trainer_step(trainer, &tensor, 1, 0, nullptr, e, n);
  });
  expectRefused("trainer_read: output",
                [&](char* e, size_t n) { return candela_trainer_read(trainer, 0, nullptr, e, n); });
  expectRefused("trainer_save: path",
                [&](char* e, size_t n) { return candela_trainer_save(trainer, nullptr, e, n); });
  candela_trainer_free(trainer);
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
TEST(NullAll, FunctionsOfTheHeadersAreAsked) {
  const std::regex declared(R"(CANDELA_API [^;(]*?(candela_\w+)\()");
  std::set<std::string> functions;
  for (const char* name : {"candela.h", "async.h", "graph.h", "train.h"}) {
    std::ifstream file(std::string(CANDELA_SOURCE_DIR "/include/candela/") + name);
    const std::string header((std::istreambuf_iterator<char>(file)), {});
    for (std::sregex_iterator at(header.begin(), header.end(), declared), end; at != end; ++at)
      functions.insert((*at)[1].str());
  }
  EXPECT_GE(functions.size(), 50u);
  EXPECT_EQ(functions, asked);
}

} // namespace
} // namespace candela
