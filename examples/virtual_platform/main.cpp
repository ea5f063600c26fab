// A program of the NPU on a platform of five modules, and once more without time, to compare.
// README.md says what the options do.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "options.h"
#include "platform.h"
#include "simulator/config/preset.h"

using namespace candela::npu;
using platform::fail;
using platform::Regions;

namespace {

Binary readProgram(const std::string& path) {
  Result<Binary> binary = readBinary(platform::readFile(path));
  if (!binary) fail(path + ": " + binary.message());
  return *std::move(binary);
}

/// The NPU that the platform has. What it is called in a program is never a path.
Configuration configurationOf(const platform::Options& options, const Binary& binary) {
  const Result<Configuration> configuration = options.configuration.empty()
                                                  ? findPreset(binary.configurationName)
                                                  : findConfiguration(options.configuration);
  if (!configuration) fail(configuration.message());
  return *configuration;
}

/// The index of a region that an option names.
size_t regionNamed(const Binary& binary, const std::string& name, const std::string& path) {
  for (size_t i = 0; i < binary.regions.size(); ++i)
    if (binary.regions[i].name == name) return i;
  fail(name + "=" + path + ": the program has no such region");
}

/// What memory holds before the run: constants, files, random bytes in inputs, else zeros.
Regions contentsOf(const Binary& binary, const platform::Options& options) {
  Regions regions;
  std::mt19937_64 random(options.seed.value_or(0));
  for (const Region& region : binary.regions) {
    std::vector<std::byte>& bytes = regions.emplace_back(region.bytes);
    if (region.kind == RegionClass::kConstants)
      bytes.assign(binary.constants.begin(), binary.constants.end());
    if (region.kind == RegionClass::kInput && options.seed)
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() >> 56);
  }
  for (const auto& [name, path] : options.set) {
    std::vector<std::byte>& bytes = regions[regionNamed(binary, name, path)];
    std::vector<std::byte> file = platform::readFile(path);
    if (file.size() != bytes.size())
      fail(path + ": " + std::to_string(file.size()) + " bytes, region '" + name + "' has " +
           std::to_string(bytes.size()));
    bytes = std::move(file);
  }
  return regions;
}

/// Runs the program on the functional engine. False: it ends in another way than on the platform,
/// or some byte of a region differs.
bool isAsWithoutTime(const Binary& binary, const Configuration& configuration, Regions regions,
                     const Regions& ofPlatform) {
  const std::unique_ptr<Device> device = makeFunctionalDevice(configuration);
  if (const Outcome bad = device->load(binary)) fail(bad->message);
  for (uint32_t i = 0; i < regions.size(); ++i)
    if (binary.regions[i].kind != RegionClass::kConstants)
      if (const Outcome bad = device->bind(i, regions[i])) fail(bad->message);
  const Result<RunReport> report = device->run();
  if (!report) fail(report.message());
  if (report->fault) {
    std::fprintf(stderr, "virtual_platform: the functional engine stops: %s\n",
                 report->fault->message.c_str());
    return false;
  }
  uint64_t compared = 0;
  for (size_t i = 0; i < regions.size(); ++i) {
    const auto [here, there] =
        std::mismatch(regions[i].begin(), regions[i].end(), ofPlatform[i].begin());
    if (here != regions[i].end()) {
      std::fprintf(stderr,
                   "virtual_platform: region '%s', byte %td: %d, the functional engine says %d\n",
                   binary.regions[i].name.c_str(), here - regions[i].begin(),
                   std::to_integer<int>(*there), std::to_integer<int>(*here));
      return false;
    }
    compared += regions[i].size();
  }
  std::printf("memory is that of the functional engine: %llu bytes of %zu regions\n",
              static_cast<unsigned long long>(compared), regions.size());
  return true;
}

int run(const platform::Options& options) {
  const Binary binary = readProgram(options.program);
  const Configuration configuration = configurationOf(options, binary);
  for (const auto& [name, path] : options.dump) regionNamed(binary, name, path);
  const Regions before = contentsOf(binary, options);
  Regions regions = before;

  TimedOptions timed;
  timed.fidelity = options.fidelity;
  Npu npu("npu", configuration, timed);
  DramMemory memory("memory", configuration);
  platform::Bus bus("bus");
  platform::Driver driver("driver", binary, regions);
  platform::Traffic traffic("traffic", options.traffic, driver);
  sc_core::sc_signal<bool> interrupt("interrupt");
  std::vector<std::byte> bytes(driver.memoryBytes());
  memory.add(platform::kMemory, bytes);
  driver.socket.bind(bus.masters);
  npu.memory.bind(bus.masters);
  traffic.socket.bind(bus.masters);
  bus.registers.bind(npu.registers);
  bus.memory.bind(memory.socket);
  npu.done(interrupt);
  driver.interrupt(interrupt);
  npu.setNames(binary);
  sc_core::sc_trace_file* const vcd =
      options.vcd.empty() ? nullptr : sc_core::sc_create_vcd_trace_file(options.vcd.c_str());
  if (vcd) npu.trace(vcd);
  sc_core::sc_start();
  if (vcd) sc_core::sc_close_vcd_trace_file(vcd);

  if (!driver.hasLoaded()) return 2;
  if (!npu.report()) fail(options.program + ": " + npu.report().message());
  if (npu.report()->fault) std::fprintf(stderr, "%s\n", npu.report()->fault->message.c_str());
  for (const auto& [name, path] : options.dump)
    platform::writeFile(path, regions[regionNamed(binary, name, path)]);
  if (!driver.hasPassed()) return 1;
  std::printf("%20llu  bytes over the bus of the memory\n",
              static_cast<unsigned long long>(npu.report()->time->dramBytes));
  return isAsWithoutTime(binary, configuration, before, regions) ? 0 : 1;
}

} // namespace

int sc_main(int argc, char* argv[]) {
  try {
    return run(platform::parseOptions(argc, argv));
  } catch (const std::exception& thrown) { // of the kernel, or memory for a region
    fail(thrown.what());
  }
}
