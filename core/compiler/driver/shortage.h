#pragma once

#include "core/compiler/driver/fit.h"

/// Devices that have less memory than they say, or do not say how much.
namespace candela::driver {

/// Whether memory of the device may end before the host's: it says so, or the host cannot use it.
bool hasMemoryOfItsOwn(const runtime::plugin::Device& device);

/// What compilations learned of the memory of devices by asking for too much.
class Shortages {
public:
  explicit Shortages(std::span<const std::shared_ptr<runtime::plugin::Device>> devices)
      : devices_(devices.begin(), devices.end()), granted_(devices.size(), 0) {}

  /// Lowers the limit of the part's target to what is known to be there, else to half of what was
  /// asked for. Returns the failure with the sum, the limit and the cure.
  Status learn(std::span<const LoweredPart> parts, size_t part, const Status& failure,
               std::vector<MemoryLimit>& limits);

private:
  std::vector<std::shared_ptr<runtime::plugin::Device>> devices_;
  std::vector<uint64_t> granted_; ///< by target: once allocated at the same time
};

} // namespace candela::driver
