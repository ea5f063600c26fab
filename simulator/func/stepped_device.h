#pragma once

#include "simulator/npu_device.h"

namespace candela::npu {

/// The functional model for who has an order of its own, such as that of time: begin, then words
/// and instructions one by one, in an order that queues, semaphores and fences allow. What it then
/// computes is what run() does.
class SteppedDevice : public Device {
public:
  /// Before the first word. Errors: as of run. `isCounting`: the PMU counts from there on.
  virtual Outcome begin(bool isCounting) = 0;
  /// The control processor runs its next word, or sends it to a queue. False: the program has
  /// stopped by a fault.
  virtual bool word() = 0;
  /// What is at the head of an engine's queue begins and ends. False: the program has stopped by a
  /// fault.
  virtual bool advance(int engine) = 0;
  /// So far.
  virtual const RunReport& report() const = 0;
  virtual uint32_t semaphore(int index) const = 0;
};

/// Regions of class constants may be bound here, where the program comes without their contents.
std::unique_ptr<SteppedDevice> makeSteppedDevice(Configuration configuration,
                                                 FunctionalOptions options = {});

} // namespace candela::npu
