#include "integrations/onnxruntime/profiler.h"

#include <nlohmann/json.hpp>

namespace candela::ort {

using namespace abi;

namespace {

constexpr size_t kMostEvents = 1'000'000; ///< as many as ONNX Runtime keeps of its own

std::vector<const char*> textsOf(const std::vector<std::string>& texts) {
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  return pointers;
}

} // namespace

class Profiler : public OrtEpProfilerImpl {
public:
  Profiler(const Api& api, std::shared_ptr<Recorder::State> state)
      : OrtEpProfilerImpl{}, api_(api), state_(std::move(state)) {
    ort_version_supported = kApiVersionOfProfiles;
    Release = [](OrtEpProfilerImpl* profiler) { delete static_cast<Profiler*>(profiler); };
    StartProfiling = [](OrtEpProfilerImpl* profiler, int64_t offset) -> OrtStatus* {
      static_cast<Profiler*>(profiler)->start(offset);
      return nullptr;
    };
    StartEvent = [](OrtEpProfilerImpl*, uint64_t) -> OrtStatus* { return nullptr; };
    StopEvent = [](OrtEpProfilerImpl*, uint64_t, const OrtProfilingEvent*) -> OrtStatus* {
      return nullptr;
    };
    EndProfiling = [](OrtEpProfilerImpl* profiler, OrtProfilingEventsContainer* container) {
      auto* const self = static_cast<Profiler*>(profiler);
      OrtStatus* const status = guarded(self->api_, [&] { self->give(container); });
      self->end();
      return status;
    };
  }
  ~Profiler() { end(); }
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

private:
  void start(int64_t offset) {
    if (!isRunning_) ++state_->running;
    isRunning_ = true;
    start_ = Recorder::Clock::now();
    offset_ = offset;
  }

  void end() {
    if (!isRunning_) return;
    isRunning_ = false;
    if (--state_->running > 0) return;
    const std::lock_guard lock(state_->mutex);
    state_->events.clear();
  }

  void give(OrtProfilingEventsContainer* container) {
    const std::lock_guard lock(state_->mutex);
    for (const Recorder::Event& event : state_->events) {
      if (event.begin < start_) continue; // of a profiler that began before
      const auto since = std::chrono::nanoseconds(event.begin - start_).count();
      const std::vector<const char*> keys = textsOf(event.keys);
      const std::vector<const char*> values = textsOf(event.values);
      const auto made = owned(
          api_,
          api_.get<OrtProfilingEvent*>(CreateProfilingEvent, EventCategory::Kernel, -1, -1,
                                       event.name.c_str(), (offset_ + since) / 1000,
                                       event.microseconds, keys.data(), values.data(), keys.size()),
          ReleaseProfilingEvent);
      const OrtProfilingEvent* const one = made.get();
      api_.call(ProfilingEventsContainer_AddEvents, container, &one, size_t(1));
    }
  }

  const Api& api_;
  std::shared_ptr<Recorder::State> state_;
  bool isRunning_ = false;
  Recorder::Clock::time_point start_ = Recorder::Clock::now();
  int64_t offset_ = 0; ///< nanoseconds of ONNX Runtime's profile before start_
};

OrtEpProfilerImpl* Recorder::profiler(const Api& api) {
  return std::make_unique<Profiler>(api, state_).release();
}

void Recorder::record(const sdk::Model& model, Clock::time_point begin) {
  const std::lock_guard lock(state_->mutex); // one thread at a time may ask a model for its trace
  for (Event& event : eventsOf(model.traceJson(), begin))
    state_->events.push_back(std::move(event));
}

std::vector<Recorder::Event> eventsOf(const std::string& trace, Recorder::Clock::time_point begin) {
  const auto json = nlohmann::json::parse(trace);
  double first = -1; // when the newest run began, on the time line of the trace
  for (const auto& event : json.at("traceEvents"))
    if (event.value("ph", "") == "X" && event.value("name", "") == "run")
      first = std::max(first, event.at("ts").get<double>());
  std::vector<Recorder::Event> events;
  for (const auto& event : json.at("traceEvents")) {
    if (event.value("ph", "") != "X" || first < 0 || event.at("ts").get<double>() < first) continue;
    Recorder::Event& one = events.emplace_back();
    one.name = "candela: " + event.at("name").get<std::string>();
    const std::chrono::duration<double, std::micro> since(event.at("ts").get<double>() - first);
    one.begin = begin + std::chrono::duration_cast<Recorder::Clock::duration>(since);
    one.microseconds = static_cast<int64_t>(event.at("dur").get<double>() + 0.5);
    if (!event.contains("args")) continue;
    for (const auto& [key, value] : event.at("args").items()) {
      one.keys.push_back(key);
      one.values.push_back(value.is_string() ? value.get<std::string>() : value.dump());
    }
  }
  return events;
}

} // namespace candela::ort
