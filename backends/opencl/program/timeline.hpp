// When the device ran the instructions of an execution, by its own clock.
#pragma once

#include "../opencl.hpp"

namespace program {

/// Collects the events of an execution whose times the host wants to know. Without `timings` it
/// does nothing. It belongs to the thread that makes it.
class Timeline {
public:
  Timeline(OpenCl& device, cdl::Timings* timings);
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  /// What comes into the queue from now on belongs to this instruction.
  void begin(uint32_t instr);
  /// Waits for all of it and tells the times.
  cdl::Status finish();

private:
  struct Span {
    uint32_t instr;
    size_t firstEvent;
  };

  OpenCl& device_;
  cdl::Timings* const timings_;
  uint64_t began_ = 0; // of the host's clock, in ns
  std::vector<Span> spans_;
  std::vector<Event> events_;
};

} // namespace program
