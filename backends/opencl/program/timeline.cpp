#include "timeline.hpp"

namespace program {

namespace {

cl_ulong timeOf(const Event& event, cl_profiling_info what) {
  cl_ulong ns = 0;
  clGetEventProfilingInfo(event.get(), what, sizeof ns, &ns, nullptr);
  return ns;
}

} // namespace

Timeline::Timeline(OpenCl& device, cdl::Timings* timings) : device_(device), timings_(timings) {
  if (timings_) OpenCl::record(&events_);
}

Timeline::~Timeline() {
  if (timings_) OpenCl::record(nullptr);
}

void Timeline::begin(uint32_t instr) {
  if (!timings_) return;
  if (spans_.empty()) began_ = cdl::Timings::now();
  spans_.push_back({instr, events_.size()});
}

cdl::Status Timeline::finish() {
  if (!timings_) return cdl::ok();
  if (cdl::Status status = device_.finish(); !status.isOk() || events_.empty()) return status;
  // The device's clock is another one: the first command came into the queue when the host began.
  const uint64_t apart = began_ - timeOf(events_.front(), CL_PROFILING_COMMAND_QUEUED);
  for (size_t s = 0; s < spans_.size(); ++s) {
    const size_t first = spans_[s].firstEvent;
    const size_t end = s + 1 < spans_.size() ? spans_[s + 1].firstEvent : events_.size();
    if (first == end) continue; // it had nothing to do
    timings_->add(spans_[s].instr, timeOf(events_[first], CL_PROFILING_COMMAND_START) + apart,
                  timeOf(events_[end - 1], CL_PROFILING_COMMAND_END) + apart);
  }
  return cdl::ok();
}

} // namespace program
