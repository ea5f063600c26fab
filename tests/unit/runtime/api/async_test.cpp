// Devices, buffers and requests through async.h and graph.h, as a program uses them.
#include <candela/async.hpp>
#include <candela/graph.h>
#include <dlpack/dlpack.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

namespace candela::sdk {
namespace {

using testing::HasSubstr;

constexpr const char* kText = R"(graph @g(%a: f32[2,4], %b: f32[2,4]) -> (%y: f32[2,4]) {
  %s = add %a, %b
  %y = relu %s
}
)";

using Floats = std::vector<float>;

candela_tensor_t tensor(Floats& data) {
  candela_tensor_t t{};
  t.elem = CANDELA_F32;
  t.rank = 2;
  t.dims[0] = 2;
  t.dims[1] = 4;
  t.data = data.data();
  t.bytes = data.size() * sizeof(float);
  return t;
}

Model compileOn(const std::vector<candela_device_t*>& devices) {
  Options options;
  options.devices = devices;
  return Model::compile(kText, std::strlen(kText), "memory.cdl", options);
}

/// What a call fails with.
template <typename F> Error failureOf(F&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing failed";
  return {CANDELA_OK, ""};
}

const Floats kA = {1, 2, 3, 4, -5, -6, -7, -8}, kB = {1, 1, 1, 1, 1, 1, 1, 9},
             kY = {2, 3, 4, 5, 0, 0, 0, 1};

TEST(Async, OpensADeviceByNumberAndTellsWhatItIs) {
  const Device device = Device::open(std::string(PLUGIN_timed) + ":1", {"us_per_run=3"});
  const candela_device_properties_t properties = device.properties();
  EXPECT_STREQ(properties.id, "timed:1");
  EXPECT_STREQ(properties.name, "timed device 1");
  EXPECT_THAT(properties.profiles, HasSubstr("FP32"));
  EXPECT_EQ(properties.index, 1u);
  EXPECT_EQ(properties.host_mapped, 0u);
  EXPECT_EQ(properties.compiles, 1u);
  EXPECT_EQ(failureOf([] { Device::open("nobody"); }).status(), CANDELA_NOT_FOUND);
  EXPECT_EQ(failureOf([] { Device::open(PLUGIN_timed ":7"); }).status(), CANDELA_INVALID_ARGUMENT);
  EXPECT_THAT(failureOf([] { Device::open(PLUGIN_timed, {"speed=1"}); }).what(),
              HasSubstr("speed"));
}

TEST(Async, CountsWhatItsMemoryIsUsedFor) {
  const Device device = Device::open(PLUGIN_timed);
  EXPECT_EQ(device.memory().bytes_in_use, 0u);
  {
    const Buffer buffer = Buffer::create(device, 1000);
    EXPECT_EQ(device.memory().bytes_in_use, 1000u);
  }
  EXPECT_EQ(device.memory().bytes_in_use, 0u);
  EXPECT_EQ(device.memory().most_bytes, 1000u);
}

TEST(Async, MovesBytesBetweenHostAndDevices) {
  const Device first = Device::open(PLUGIN_timed), second = Device::open(PLUGIN_timed ":1");
  Buffer a = Buffer::create(first, 32), b = Buffer::create(first, 32),
         c = Buffer::create(second, 32), host = Buffer::onHost(32);
  EXPECT_EQ(a.data(), nullptr) << "the host does not see vram";
  EXPECT_NE(host.data(), nullptr);
  Floats zeros(8, 1), back(8);
  a.read(zeros.data(), 32);
  EXPECT_EQ(zeros, Floats(8, 0)) << "buffers begin with zeros";
  a.write(kA.data(), 32);
  a.copyTo(b, 32);
  b.copyTo(c, 32);
  c.copyTo(host, 32);
  host.read(back.data(), 32);
  EXPECT_EQ(back, kA);
  EXPECT_THAT(failureOf([&] { a.write(kA.data(), 32, 4); }).what(),
              HasSubstr("32 bytes from offset 4 leave a buffer of 32"));
  EXPECT_EQ(failureOf([&] { Buffer::create(first, 0); }).status(), CANDELA_INVALID_ARGUMENT);
}

TEST(Async, RunsRequestsOnBuffersThatStayOnTheDevice) {
  const Device device = Device::open(PLUGIN_timed);
  const Model model = compileOn({device.get()});
  Session session({&model});
  Buffer a = Buffer::create(device, 32), b = Buffer::create(device, 32),
         sum = Buffer::create(device, 32), y = Buffer::create(device, 32);
  a.write(kA.data(), 32);
  b.write(kB.data(), 32);
  session.submit({argument(a), argument(b)}, {argument(sum)}).wait();
  const Request second = session.submit({argument(sum), argument(b)}, {argument(y)});
  second.wait();
  Floats back(8), expected = kY;
  for (size_t i = 0; i < expected.size(); ++i) expected[i] += kB[i];
  y.read(back.data(), 32);
  EXPECT_EQ(back, expected);
  EXPECT_THAT(session.statsJson(), HasSubstr("\"device_copies\": 0"))
      << "everything was where the device wanted it";
}

TEST(Async, HoldsNoBufferOfARequestThatIsDone) {
  const Device device = Device::open(PLUGIN_timed);
  const Model model = compileOn({device.get()});
  Session session({&model});
  uint64_t before = 0;
  for (int i = 0; i < 3; ++i) {
    Buffer a = Buffer::create(device, 32), b = Buffer::create(device, 32),
           y = Buffer::create(device, 32);
    session.submit({argument(a), argument(b)}, {argument(y)}).wait();
    if (i == 0) before = device.memory().bytes_in_use;
    EXPECT_EQ(device.memory().bytes_in_use, before);
  }
  EXPECT_EQ(device.memory().bytes_in_use, before - 96);
}

TEST(Async, RunsRequestsOnMemoryOfTheHostAndAllocatesOutputs) {
  const Device device = Device::open(PLUGIN_timed);
  const Model on = compileOn({device.get()}), off = compileOn({});
  for (const Model* model : {&on, &off}) {
    Session session({model});
    Floats a = kA, b = kB, y(8);
    const Request given =
        session.submit({argument(tensor(a)), argument(tensor(b))}, {argument(tensor(y))});
    const Request made = session.submit({argument(tensor(a)), argument(tensor(b))}, {anywhere()});
    given.wait();
    made.wait();
    EXPECT_EQ(y, kY);
    const candela_tensor_t output = made.output(0);
    ASSERT_EQ(output.bytes, 32u);
    EXPECT_EQ(std::memcmp(output.data, kY.data(), 32), 0);
    EXPECT_EQ(failureOf([&] { made.output(1); }).status(), CANDELA_INVALID_ARGUMENT);
  }
}

TEST(Async, OrdersRequestsByTimelines) {
  const Model model = compileOn({});
  Session session({&model});
  Timeline timeline;
  Floats a = kA, b = kB, y(8), z(8);
  RequestOptions first, second;
  first.waits = {{timeline.get(), 1}};
  first.signals = {{timeline.get(), 2}};
  second.waits = {{timeline.get(), 2}};
  const Request late =
      session.submit({argument(tensor(y)), argument(tensor(b))}, {argument(tensor(z))}, second);
  const Request early =
      session.submit({argument(tensor(a)), argument(tensor(b))}, {argument(tensor(y))}, first);
  EXPECT_FALSE(late.waitFor(std::chrono::nanoseconds(0)));
  timeline.signal(1);
  late.wait();
  EXPECT_EQ(y, kY);
  for (size_t i = 0; i < z.size(); ++i) EXPECT_EQ(z[i], kY[i] + kB[i]);
  EXPECT_EQ(timeline.value(), 2u);
}

TEST(Async, CallsBackWithHowItEnded) {
  const Device device = Device::open(PLUGIN_timed, {"fault=memory", "fault_every=2"});
  const Model model = compileOn({device.get()});
  Floats a = kA, b = kB, y(8);
  std::vector<candela_status_t> told;
  std::string message;
  {
    Session session({&model}, {1, 1, false});
    RequestOptions options;
    options.done = [&](candela_status_t status, const std::string& text) {
      told.push_back(status);
      message = text;
    };
    for (int i = 0; i < 2; ++i)
      session.submit({argument(tensor(a)), argument(tensor(b))}, {argument(tensor(y))}, options);
    EXPECT_THROW(session.submit({}, {}, options), Error) << "of which nobody is told";
    // The third one waits for room, so the first two are done.
    session.submit({argument(tensor(a)), argument(tensor(b))}, {argument(tensor(y))}).wait();
  } // and whoever waits to be told was told
  EXPECT_EQ(told, std::vector({CANDELA_OK, CANDELA_OUT_OF_MEMORY}));
  EXPECT_THAT(message, HasSubstr("no memory for this execution"));
}

TEST(Async, GivesUpByCancellingAndAtTheDeadline) {
  const Device device = Device::open(PLUGIN_timed, {"fault=hang"});
  const Model model = compileOn({device.get()});
  Session session({&model});
  Floats a = kA, b = kB, y(8);
  const auto submit = [&](const RequestOptions& options) {
    return session.submit({argument(tensor(a)), argument(tensor(b))}, {argument(tensor(y))},
                          options);
  };
  Request cancelled = submit({});
  cancelled.cancel();
  EXPECT_EQ(failureOf([&] { cancelled.wait(); }).status(), CANDELA_CANCELLED);
  RequestOptions soon;
  soon.timeout = std::chrono::milliseconds(2);
  const Request late = submit(soon);
  EXPECT_EQ(failureOf([&] { late.wait(); }).status(), CANDELA_TIMEOUT);
  EXPECT_TRUE(late.isDone());
}

TEST(Async, SharesBytesWithOtherLibrariesByDlpack) {
  alignas(64) static float data[8] = {1, 2, 3, 4, -5, -6, -7, -8};
  static int released = 0;
  int64_t shape[] = {2, 4};
  DLManagedTensor given{};
  given.dl_tensor = {data, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, nullptr, 0};
  given.deleter = [](DLManagedTensor*) { ++released; };
  candela_buffer_t* buffer = nullptr;
  candela_tensor_t description{};
  char error[256] = "";
  ASSERT_EQ(candela_buffer_from_dlpack(&given, &description, &buffer, error, sizeof error),
            CANDELA_OK)
      << error;
  EXPECT_EQ(candela_buffer_data(buffer), data) << "nothing was copied";
  EXPECT_EQ(description.elem, CANDELA_F32);
  EXPECT_EQ(description.dims[1], 4);
  DLManagedTensor* taken = nullptr;
  ASSERT_EQ(candela_buffer_to_dlpack(buffer, &description, &taken, error, sizeof error), CANDELA_OK)
      << error;
  candela_buffer_free(buffer);
  EXPECT_EQ(released, 0) << "the tensor that was made of it holds the bytes";
  EXPECT_EQ(taken->dl_tensor.data, data);
  EXPECT_EQ(taken->dl_tensor.ndim, 2);
  taken->deleter(taken);
  EXPECT_EQ(released, 1);

  int64_t strides[] = {1, 2};
  given.dl_tensor.strides = strides;
  EXPECT_EQ(candela_buffer_from_dlpack(&given, &description, &buffer, error, sizeof error),
            CANDELA_UNSUPPORTED);
  EXPECT_THAT(error, HasSubstr("stride"));
  given.dl_tensor.strides = nullptr;
  given.dl_tensor.device.device_type = kDLCUDA;
  EXPECT_EQ(candela_buffer_from_dlpack(&given, &description, &buffer, error, sizeof error),
            CANDELA_UNSUPPORTED);
  EXPECT_EQ(released, 1) << "what is refused stays the caller's";
}

TEST(Async, TellsWhatIsWrongWithASubmission) {
  const Model model = compileOn({});
  Session session({&model});
  Floats a = kA, b = kB, y(8);
  const Buffer small = Buffer::onHost(16), whole = Buffer::onHost(64);
  const auto out = argument(tensor(y));
  EXPECT_THAT(failureOf([&] { session.submit({argument(tensor(a))}, {out}); }).what(),
              HasSubstr("1 inputs were given, the model has 2"));
  EXPECT_THAT(
      failureOf([&] { session.submit({argument(tensor(a)), argument(small)}, {out}); }).what(),
      HasSubstr("input 'b' needs 32 bytes, 16 were given"));
  EXPECT_THAT(
      failureOf([&] { session.submit({argument(tensor(a)), argument(whole, 4)}, {out}); }).what(),
      HasSubstr("'b' at offset 4 of a buffer of 64 bytes"));
  EXPECT_THAT(failureOf([&] {
                session.submit({argument(tensor(a)), argument(tensor(b))}, {argument(small)});
              }).what(),
              HasSubstr("output 'y' needs 32 bytes"));
}

TEST(Async, RefusesModelsThatAreNoCopies) {
  const Model one = compileOn({});
  const char* other = "graph @h(%a: f32[2,4]) -> (%y: f32[2,4]) {\n  %y = relu %a\n}\n";
  const Model two = Model::compile(other, std::strlen(other), "other.cdl");
  EXPECT_THAT(failureOf([&] { Session({&one, &two}); }).what(), HasSubstr("differ"));
  Session::Options none;
  none.capacity = 0;
  EXPECT_EQ(failureOf([&] { Session({&one}, none); }).status(), CANDELA_INVALID_ARGUMENT);
}

TEST(Async, CompilesFromMemoryWhatStandsInNoFile) {
  EXPECT_THAT(failureOf([] { Model::compile("graph", 5, "memory.cdl"); }).what(),
              HasSubstr("memory.cdl:1:6"));
  EXPECT_EQ(failureOf([] { Model::compile("\1\2", 2, "memory.onnx"); }).status(),
            CANDELA_BAD_MODEL);
  EXPECT_EQ(failureOf([] { Model::load("\1\2", 2, "memory.cdb"); }).status(), CANDELA_BAD_MODEL);
  EXPECT_EQ(failureOf([] { Model::compile(nullptr, 0, "memory.cdl"); }).status(),
            CANDELA_INVALID_ARGUMENT);
}

TEST(Graphs, AreBuiltVerifiedPrintedAndRun) {
  candela_graph_t* graph = nullptr;
  ASSERT_EQ(candela_graph_create("net", &graph), CANDELA_OK);
  char error[256] = "";
  Floats weights = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 2}, a = kA, y(8);
  candela_tensor_t type = tensor(a), w = tensor(weights);
  w.dims[0] = 4;
  candela_value_t x = 0, c = 0, product = 0, result = 0;
  ASSERT_EQ(candela_graph_input(graph, "x", &type, &x, error, sizeof error), CANDELA_OK) << error;
  ASSERT_EQ(candela_graph_constant(graph, "w", &w, &c, error, sizeof error), CANDELA_OK) << error;
  const candela_value_t operands[] = {x, c};
  ASSERT_EQ(candela_graph_op(graph, "matmul", operands, 2, nullptr, "MatMul_0", &product, 1, error,
                             sizeof error),
            CANDELA_OK)
      << error;
  ASSERT_EQ(candela_graph_op(graph, "transpose", &product, 1, "perm = [1,0]", "Transpose_1",
                             &result, 1, error, sizeof error),
            CANDELA_OK)
      << error;
  ASSERT_EQ(candela_graph_output(graph, result, "y", error, sizeof error), CANDELA_OK);
  ASSERT_EQ(candela_graph_verify(graph, error, sizeof error), CANDELA_OK) << error;
  candela_tensor_t inferred{};
  ASSERT_EQ(candela_graph_type(graph, result, &inferred), CANDELA_OK);
  EXPECT_EQ(inferred.bytes, 32u);
  char* const text = candela_graph_print(graph);
  EXPECT_THAT(text, HasSubstr("matmul %x, %w"));
  candela_free_text(text);

  candela_model_t* model = nullptr;
  ASSERT_EQ(candela_compile_graph(graph, nullptr, &model, error, sizeof error), CANDELA_OK)
      << error;
  candela_graph_free(graph);
  candela_tensor_t in = tensor(a), out = tensor(y); // whose dims a run sets
  EXPECT_EQ(candela_run(model, &in, 1, &out, 1, error, sizeof error), CANDELA_OK) << error;
  EXPECT_EQ(y, Floats({1, -5, 2, -6, 3, -7, 8, -16}));
  EXPECT_THAT(candela_report_json(model), HasSubstr("MatMul_0"));
  candela_free(model);
}

TEST(Graphs, RefuseWhatTheOpsRulesForbid) {
  candela_graph_t* graph = nullptr;
  ASSERT_EQ(candela_graph_create(nullptr, &graph), CANDELA_OK);
  char error[256] = "";
  Floats a = kA;
  candela_tensor_t type = tensor(a);
  candela_value_t x = 0, y = 0;
  ASSERT_EQ(candela_graph_input(graph, "x", &type, &x, error, sizeof error), CANDELA_OK);
  EXPECT_EQ(candela_graph_input(graph, "x", &type, &y, error, sizeof error),
            CANDELA_INVALID_ARGUMENT);
  EXPECT_THAT(error, HasSubstr("'x' is taken"));
  const auto op = [&](const char* name, std::vector<candela_value_t> operands,
                      const char* attributes) {
    return candela_graph_op(graph, name, operands.data(), uint32_t(operands.size()), attributes,
                            nullptr, &y, 1, error, sizeof error);
  };
  EXPECT_EQ(op("no_such_op", {x}, nullptr), CANDELA_INVALID_ARGUMENT);
  EXPECT_EQ(op("relu", {9}, nullptr), CANDELA_INVALID_ARGUMENT);
  EXPECT_THAT(error, HasSubstr("value 9 of 1"));
  EXPECT_EQ(op("matmul", {x, x}, nullptr), CANDELA_BAD_MODEL) << "2x4 by 2x4";
  EXPECT_EQ(op("transpose", {x}, "perm = "), CANDELA_BAD_MODEL);
  EXPECT_EQ(op("transpose", {x}, "beta = 1"), CANDELA_BAD_MODEL);
  EXPECT_EQ(op("relu", {x}, nullptr), CANDELA_OK) << error;
  candela_graph_free(graph);
}

} // namespace
} // namespace candela::sdk
