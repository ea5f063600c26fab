#pragma once

#include "tools/candela/support/model.h"

/// What a device leaves to the host: its steps, their time where it is known, and what device and
/// host take together.
namespace candela::tool {

/// --host-bandwidth and --host-rates.
struct HostArguments {
  std::string rates;
  double bandwidth = 0; ///< GB/s; 0: the host's steps have no time

  void addTo(CLI::App* command);
  /// Reads the file of rates, whose mistakes are told before minutes have gone.
  void check() const;
};

/// Adds to a report what a placement leaves to the host: `host_macs`, `host_nodes`, and where the
/// arguments say times, these and `host_time`.
void addHostShare(const HostArguments& arguments, const Json& placement, Json& report);

/// Of a report with `time_ms` of the device, `host_nodes`, `host_macs` and maybe `host_time`: the
/// device and the host, one after the other. Where the host has steps and nobody measured it, there
/// is no time of the whole.
Json networkOf(const Json& report);

/// "1.513 ms  661.0 runs/s" of the whole network, with the host's share where there is one;
/// `device`: what it is called, "NPU".
std::string networkText(const Json& network, const std::string& device);

/// " (most often: REASON)", of the steps that are not the device's; empty where none says why.
std::string whyOnHost(const Json& placement);
/// The table of the steps, at most `rows`, and their time.
void printHost(const Json& nodes, size_t rows, Console& console);

} // namespace candela::tool
