/// What runs took, for the profile of ONNX Runtime.
#ifndef CANDELA_INTEGRATIONS_ONNXRUNTIME_PROFILER_H
#define CANDELA_INTEGRATIONS_ONNXRUNTIME_PROFILER_H

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "integrations/onnxruntime/api.h"

namespace candela::ort {

/// Collects the steps and instructions of runs for the profilers that ONNX Runtime asked for.
/// Threads: any.
class Recorder {
public:
  using Clock = std::chrono::steady_clock;

  struct Event {
    std::string name;
    Clock::time_point begin;
    int64_t microseconds;
    std::vector<std::string> keys, values;
  };

  /// A profiler, which ONNX Runtime releases; it may outlive the recorder. ONNX Runtime asks for
  /// one whether or not the session is profiled, and starts it where it is.
  abi::OrtEpProfilerImpl* profiler(const Api& api);
  /// Whether a profiler has started and not ended.
  bool isWanted() const { return state_->running > 0; }
  /// What the model's newest run took, which began then.
  void record(const sdk::Model& model, Clock::time_point begin);

private:
  friend class Profiler;
  /// All events since the first of the profilers that run.
  struct State {
    std::atomic<size_t> running = 0;
    std::mutex mutex;
    std::vector<Event> events;
  };

  std::shared_ptr<State> state_ = std::make_shared<State>();
};

/// The events of the newest run in a trace of Candela, by the time at which that run began.
std::vector<Recorder::Event> eventsOf(const std::string& trace, Recorder::Clock::time_point begin);

} // namespace candela::ort

#endif
