#pragma once

#include <string>
#include <vector>

#include "simulator/npu_device.h"
#include "tools/candela/support/command.h"

/// What --engine rtl alone has: signals as a file of waves, and hardware that is built first.
namespace candela::tool {

/// --trace-vcd FILE, --from CYCLE, --to CYCLE.
struct WaveArguments {
  std::string file;
  int64_t from = 0, to = -1; ///< -1: to the program's end

  void addTo(CLI::App* command);
  /// Throws Failure where `engine` has no signals, or the range is none.
  void check(const std::string& engine) const;
  npu::WaveOptions options() const;
  /// As NAME=VALUE of the plugin npu_sim.
  std::vector<std::string> backendOptions() const;
};

/// Tells the user before minutes go that the hardware is built first, unless it is there already.
void sayHardwareIsBuilt(const npu::Configuration& configuration, const WaveArguments& waves,
                        Console& console);

} // namespace candela::tool
