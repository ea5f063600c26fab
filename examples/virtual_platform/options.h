// The command line of the platform, and the files that it names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "simulator/timing/report.h"

namespace platform {

/// Prints why there is nothing to run, and ends the process with status 2.
[[noreturn]] void fail(const std::string& message);

/// What the command line says; README.md has the options.
struct Options {
  std::string program;       ///< path of a .npubin file
  std::string configuration; ///< a preset or the path of a .toml file; empty: the program's
  std::map<std::string, std::string>
      set; ///< paths by the names of regions: contents before the run
  std::map<std::string, std::string> dump; ///< the same: contents after it
  std::optional<uint64_t> seed;            ///< of the bytes of inputs; none: they are 0
  double traffic = 0;                      ///< of the other master, MB/s; 0: there is none
  candela::npu::Fidelity fidelity = candela::npu::Fidelity::kAccurate;
  std::string vcd; ///< a path without .vcd; empty: none
};
/// What is wrong on the command line ends the process.
Options parseOptions(int argc, char** argv);

/// All bytes of a file; one that cannot be read, or written, ends the process.
std::vector<std::byte> readFile(const std::string& path);
void writeFile(const std::string& path, const std::vector<std::byte>& bytes);

} // namespace platform
