// request_stress COUNT [SEED]: so many requests from 16 threads on copies of a model on three
// backends, of which devices run out of memory, hang until they are given up, and get lost. Prints
// what became of them as JSON, and fails where a request is lost, answered twice or wrong, or where
// memory grows.
#include <candela/async.hpp>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

#include <malloc.h>

namespace {

using namespace candela;

constexpr int kThreads = 16;
constexpr uint64_t kRound = 5000; ///< requests of one session: then devices come back
constexpr const char* kText = R"(graph @g(%a: f32[4,4], %b: f32[4,4]) -> (%y: f32[4,4]) {
  %p = matmul %a, %b
  %s = add %p, %a
  %y = relu %s
}
)";

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "request_stress: %s\n", what.c_str());
  std::exit(1);
}

/// Bytes that are allocated and not freed. The resident set also holds what malloc keeps for
/// threads to come, which rises and falls by itself.
uint64_t liveBytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

/// How the requests of all threads ended.
struct Ends {
  std::atomic<uint64_t> succeeded{0}, memory{0}, cancelled{0}, late{0}, told{0};
};

/// One request and what it must give: b is the identity, so y = relu(2 a).
struct Case {
  explicit Case(float value) : expected(value > 0 ? 2 * value : 0) {
    std::fill(std::begin(a), std::end(a), value);
    for (int i = 0; i < 16; ++i) b[i] = i % 5 == 0 ? 1.0f : 0.0f;
    std::fill(std::begin(y), std::end(y), -1.0f);
  }
  alignas(64) float a[16], b[16], y[16];
  float expected;
  std::atomic<int> answers{0};

  bool isRight() const {
    return std::all_of(std::begin(y), std::end(y), [&](float v) { return v == expected; });
  }
};

candela_argument_t argument(float* data) {
  candela_tensor_t t{};
  t.elem = CANDELA_F32;
  t.rank = 2;
  t.dims[0] = t.dims[1] = 4;
  t.data = data;
  t.bytes = 64;
  return {t, nullptr, 0};
}

void countEnd(const Case& one, candela_status_t status, Ends& ends) {
  switch (status) {
  case CANDELA_OK:
    if (!one.isRight()) fail("a request that succeeded has wrong values");
    ++ends.succeeded;
    return;
  case CANDELA_OUT_OF_MEMORY: ++ends.memory; return;
  case CANDELA_CANCELLED: ++ends.cancelled; return;
  case CANDELA_TIMEOUT: ++ends.late; return;
  default: fail("a request ended with status " + std::to_string(status));
  }
}

/// Submits one request, perhaps with a deadline, perhaps cancelled, and waits for it.
void request(candela_session_t* session, std::mt19937_64& random, Ends& ends) {
  Case one(static_cast<float>(random() % 2001) - 1000);
  const candela_argument_t inputs[] = {argument(one.a), argument(one.b)};
  const candela_argument_t output = argument(one.y);
  candela_submission_t submission = CANDELA_SUBMISSION_INIT;
  submission.inputs = inputs;
  submission.input_count = 2;
  submission.outputs = &output;
  submission.output_count = 1;
  // Without a deadline a device that hangs would never end.
  submission.timeout_ns = 2'000'000 + random() % 20'000'000;
  struct Told {
    Case* one;
    Ends* ends;
  } told{&one, &ends};
  submission.context = &told;
  submission.done = [](void* context, candela_status_t, const char*) {
    const Told& of = *static_cast<Told*>(context);
    ++of.ends->told;
    ++of.one->answers;
  };
  candela_request_t* handle = nullptr;
  char error[256] = "";
  const candela_status_t submitted =
      candela_submit(session, &submission, &handle, error, sizeof error);
  if (submitted == CANDELA_TIMEOUT) { // no room in time: nothing was submitted
    ++ends.late;
    ++ends.told;
    return;
  }
  if (submitted != CANDELA_OK) fail(error);
  if (random() % 16 == 0) candela_request_cancel(handle);
  const candela_status_t status =
      candela_request_wait(handle, CANDELA_FOREVER, error, sizeof error);
  countEnd(one, status, ends);
  while (one.answers == 0) std::this_thread::yield(); // its callback may still be running
  if (one.answers != 1) fail("a request was answered twice");
  candela_request_free(handle);
}

sdk::Model compileOn(const std::string& device, const std::vector<std::string>& options) {
  sdk::Options compile;
  compile.backends = device;
  compile.options = options;
  return sdk::Model::compile(kText, std::strlen(kText), "stress.cdl", compile);
}

/// The requests of one session, from all threads.
void runRound(uint64_t count, uint64_t seed, Ends& ends) {
  const sdk::Model memory = compileOn(PLUGIN_timed, {"fault=memory", "fault_every=97"}),
                   hangs = compileOn(PLUGIN_timed ":1", {"fault=hang", "fault_every=211"}),
                   lost = compileOn(PLUGIN_timed, {"fault=lost", "fault_every=400"}),
                   sound = compileOn(PLUGIN_template, {}), host = compileOn("soft", {});
  candela_model_t* models[] = {memory.get(), hangs.get(), lost.get(), sound.get(), host.get()};
  candela_session_options_t options = CANDELA_SESSION_OPTIONS_INIT;
  options.capacity = 24;
  candela_session_t* session = nullptr;
  char error[256] = "";
  if (candela_session_create(models, 5, &options, &session, error, sizeof error) != CANDELA_OK)
    fail(error);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      std::mt19937_64 random(seed * kThreads + static_cast<uint64_t>(t));
      for (uint64_t i = static_cast<uint64_t>(t); i < count; i += kThreads)
        request(session, random, ends);
    });
  for (std::thread& thread : threads) thread.join();
  candela_session_free(session);
}

} // namespace

int main(int argc, char** argv) {
  const uint64_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 2000;
  const uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  Ends ends;
  uint64_t warm = 0, done = 0;
  try {
    for (uint64_t round = 0; done < count; ++round) {
      const uint64_t now = std::min(kRound, count - done);
      runRound(now, seed + round, ends);
      done += now;
      if (warm == 0 && done >= 10'000) warm = liveBytes();
    }
  } catch (const sdk::Error& error) {
    fail(error.what());
  }
  const uint64_t answered = ends.succeeded + ends.memory + ends.cancelled + ends.late;
  if (answered != count || ends.told != count) fail("requests were lost");
  const uint64_t end = liveBytes();
  const uint64_t grown = warm && end > warm ? end - warm : 0;
  std::printf("{\"requests\": %llu, \"seed\": %llu, \"threads\": %d, \"succeeded\": %llu, "
              "\"out_of_memory\": %llu, \"cancelled\": %llu, \"timed_out\": %llu, "
              "\"grown_bytes\": %llu}\n",
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(seed),
              kThreads, static_cast<unsigned long long>(ends.succeeded),
              static_cast<unsigned long long>(ends.memory),
              static_cast<unsigned long long>(ends.cancelled),
              static_cast<unsigned long long>(ends.late), static_cast<unsigned long long>(grown));
  if (ends.memory == 0 || ends.cancelled == 0 || ends.succeeded == 0)
    fail("the faults were not met: more requests are needed");
  return 0;
}
