#pragma once

#include "tools/candela/run/run.h"

namespace candela::tool {

/// What the device counted while a model ran on it once, all programs between host steps together.
struct Measured {
  Json counters = Json::object(); ///< by name of the PMU
  /// In their order: {name, onnx_nodes, program, macs, weights, tables, loaded, stored} and with
  /// time {cycles, start, done, busy, stall, causes, bound, ...}, start and done on the clock of
  /// all programs.
  Json layers = Json::array();
  /// null without time; else {fidelity, clock_mhz, cycles, busy, stall, dram, provenance,
  /// constants, ...}
  Json time;
  uint64_t programs = 0;

  uint64_t counter(const char* name) const { return counters.value(name, uint64_t{0}); }
  uint64_t sum(const char* key) const;  ///< over the layers
  uint64_t most(const char* key) const; ///< of a layer
  uint64_t dramBytes() const {
    return sum("weights") + sum("tables") + sum("loaded") + sum("stored");
  }
  uint64_t cycles() const { return time.is_null() ? 0 : time.value("cycles", uint64_t{0}); }
  /// 0..1, of all products that the array could have made in the cycles.
  double macUtilization() const;
};

/// Of the layers together, by class: {all, weights, tables, activations, activations_loaded,
/// activations_stored}.
Json dramBytesOf(const Measured& measured);

/// "array 93 %, dram 7 %": what a layer's cycles went to, the most first. Empty without causes.
std::string causesText(const Json& layer);

/// Where the layers of a report stand, by program and name; the first of equal ones.
std::map<std::pair<uint64_t, std::string>, size_t> layerIndex(const Json& layers);

/// One run on a simulated NPU.
struct Simulation {
  Session session;
  std::vector<Tensor> outputs;
  Measured measured;
  double wallMs = 0; ///< of the run
};

/// Compiles for a configuration and runs once. `engine`: what npu_sim calls so: func, fast,
/// accurate, ...; `timelinePath`: empty, or where the backend writes when each instruction ran.
/// Throws Failure where the compiler's sums are not what the device counted.
Simulation simulateOnce(const RunOptions& run, const std::string& configuration,
                        const std::string& engine, const std::string& timelinePath);

} // namespace candela::tool
