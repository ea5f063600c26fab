#pragma once

#include <vector>

#include "simulator/npu_device.h"

namespace candela::npu {

/// What devices share that run the hardware itself, or a model with its pins: programs and bindings
/// are those that the functional device takes.
class BoundDevice : public Device {
public:
  const Configuration& configuration() const final { return loader_->configuration(); }
  const Binary& program() const final { return loader_->program(); }
  Outcome load(Binary binary) final;
  Outcome bind(uint32_t region, std::span<std::byte> memory) final;

protected:
  explicit BoundDevice(const Configuration& configuration);

  /// Errors: nothing was loaded, or a region with bytes has no memory.
  Outcome checkBound() const;
  /// By their index in the program; constants lie in the device, others with the caller.
  std::span<const std::span<std::byte>> regions() const { return regions_; }

private:
  std::unique_ptr<Device> loader_;
  std::vector<std::byte> constants_;
  std::vector<std::span<std::byte>> regions_;
};

} // namespace candela::npu
