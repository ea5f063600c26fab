#pragma once

#include <string>
#include <vector>

#include "tools/candela/support/console.h"

/// How long the host takes for what a device leaves to it, by rates that `candela calibrate-host`
/// measured on a machine.
namespace candela::tool {

/// Of steps of one kind: start + bytes in and out x nsPerByte + products x nsPerMac.
struct HostRate {
  std::string op; ///< as reports call it, with the type of its first result: "softmax f32"
  double startNs = 0, nsPerByte = 0, nsPerMac = 0;
};

/// The name of the rate for ops that were not measured.
inline constexpr const char* kOtherOps = "other";

struct HostRates {
  std::string file;    ///< for reports
  std::string machine; ///< where they were measured
  uint32_t threads = 1;
  std::vector<HostRate> rates; ///< one of them is kOtherOps

  /// That of the op with its type, else of the op, else of kOtherOps.
  const HostRate& of(const std::string& op) const;
};

/// Reads what hostRatesJson() wrote. Throws Failure with file and place where it is something else.
HostRates readHostRates(const std::string& path);
/// candela.host_rates/1
Json hostRatesJson(const HostRates& rates);

/// Adds `time_ms`, `time_tag` ("fitted") and `time_by` (the rate's op) to each of a report's
/// host_nodes; the sum in milliseconds.
double addHostTimes(const HostRates& rates, Json& nodes);

} // namespace candela::tool
