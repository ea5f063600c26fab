// A program of the NPU on a platform of five modules. README.md says what the options do.
#include "platform.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "simulator/config/preset.h"

using namespace candela::npu;

namespace {

[[noreturn]] void fail(const std::string& message) {
  std::fprintf(stderr, "virtual_platform: %s\n", message.c_str());
  std::exit(2);
}

std::vector<std::byte> readFile(const std::string& path) {
  if (!std::filesystem::is_regular_file(path)) fail(path + ": there is no such file");
  std::ifstream file(path, std::ios::binary);
  std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  if (!file) fail(path + ": it cannot be read");
  const auto view = std::as_bytes(std::span(bytes));
  return {view.begin(), view.end()};
}

constexpr const char* kUsage =
    "usage: virtual_platform PROGRAM.npubin [--npu CONFIG] [--set REGION=FILE]... [--dump "
    "REGION=FILE]... [--traffic MB/S]\n"
    "                        [--fast] [--vcd NAME]\n"
    "Exit status: 0 the program halted, 1 it faulted, 2 bad usage or input.\n";

struct Arguments {
  std::string program, configuration, vcd;
  std::map<std::string, std::string> set, dump;
  double traffic = 0;
  Fidelity fidelity = Fidelity::kAccurate;
};

void assign(std::map<std::string, std::string>& to, const std::string& option,
            const std::string& text) {
  const size_t at = text.find('=');
  if (at == text.npos) fail(option + " " + text + ": REGION=FILE is wanted");
  if (!to.emplace(text.substr(0, at), text.substr(at + 1)).second)
    fail(option + " " + text + ": the region was named before");
}

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  const std::vector<std::string> given(argv + 1, argv + argc);
  for (size_t i = 0; i < given.size(); ++i) {
    const std::string& option = given[i];
    if (option == "--help" || option == "-h") {
      std::fputs(kUsage, stdout);
      std::exit(0);
    }
    if (option == "--fast") {
      arguments.fidelity = Fidelity::kFast;
      continue;
    }
    if (!option.starts_with("-")) {
      if (!arguments.program.empty())
        fail(option + ": there is a program already, " + arguments.program);
      arguments.program = option;
      continue;
    }
    if (option != "--npu" && option != "--set" && option != "--dump" && option != "--traffic" &&
        option != "--vcd")
      fail(option + ": there is no such option; --help lists them");
    if (++i == given.size()) fail(option + ": a value is wanted");
    const std::string& value = given[i];
    if (option == "--npu") arguments.configuration = value;
    if (option == "--set") assign(arguments.set, option, value);
    if (option == "--dump") assign(arguments.dump, option, value);
    if (option == "--vcd") arguments.vcd = value;
    if (option == "--traffic") {
      char* end = nullptr;
      arguments.traffic = std::strtod(value.c_str(), &end);
      if (*end || !(arguments.traffic > 0 && arguments.traffic < 1e6))
        fail("--traffic " + value + ": MB/s above 0 and below 1e6 are wanted");
    }
  }
  if (arguments.program.empty()) fail("a program is wanted; --help says more");
  return arguments;
}

using Regions = std::vector<std::vector<std::byte>>;

void readRegion(const std::string& name, const std::string& path, std::vector<std::byte>& region) {
  std::vector<std::byte> bytes = readFile(path);
  if (bytes.size() != region.size())
    fail(path + ": " + std::to_string(bytes.size()) + " bytes, region '" + name + "' has " +
         std::to_string(region.size()));
  region = std::move(bytes);
}

void writeRegion(const std::string& path, const std::vector<std::byte>& region) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(region.data()),
             static_cast<std::streamsize>(region.size()));
  if (!file.flush()) fail(path + ": it cannot be written");
}

int run(const Arguments& arguments) {
  const Result<Binary> binary = readBinary(readFile(arguments.program));
  if (!binary) fail(arguments.program + ": " + binary.message());
  const Result<Configuration> configuration = arguments.configuration.empty()
                                                  ? findPreset(binary->configurationName)
                                                  : findConfiguration(arguments.configuration);
  if (!configuration) fail(configuration.message());

  Regions regions;
  std::map<std::string, size_t> known;
  for (const Region& region : binary->regions) {
    known[region.name] = regions.size();
    regions.emplace_back(region.bytes);
    if (region.kind == RegionClass::kConstants)
      regions.back().assign(binary->constants.begin(), binary->constants.end());
  }
  for (const auto* named : {&arguments.set, &arguments.dump})
    for (const auto& [name, path] : *named)
      if (!known.contains(name)) fail(name + "=" + path + ": the program has no such region");
  for (const auto& [name, path] : arguments.set) readRegion(name, path, regions[known[name]]);

  TimedOptions options;
  options.fidelity = arguments.fidelity;
  Npu npu("npu", *configuration, options);
  DramMemory memory("memory", *configuration);
  platform::Bus bus("bus");
  platform::Driver driver("driver", *binary, regions);
  platform::Traffic traffic("traffic", arguments.traffic, driver);
  sc_core::sc_signal<bool> done("done");
  std::vector<std::byte> bytes(driver.memoryBytes());
  memory.add(platform::kMemory, bytes);
  driver.socket.bind(bus.masters);
  npu.memory.bind(bus.masters);
  traffic.socket.bind(bus.masters);
  bus.registers.bind(npu.registers);
  bus.memory.bind(memory.socket);
  npu.done(done);
  driver.done(done);
  npu.setNames(*binary);
  sc_core::sc_trace_file* const vcd =
      arguments.vcd.empty() ? nullptr : sc_core::sc_create_vcd_trace_file(arguments.vcd.c_str());
  if (vcd) npu.trace(vcd);
  sc_core::sc_start();
  if (vcd) sc_core::sc_close_vcd_trace_file(vcd);

  if (!driver.hasLoaded()) return 2;
  if (!npu.report()) fail(arguments.program + ": " + npu.report().message());
  if (npu.report()->fault) std::fprintf(stderr, "%s\n", npu.report()->fault->message.c_str());
  for (const auto& [name, path] : arguments.dump) writeRegion(path, regions[known[name]]);
  return driver.hasPassed() ? 0 : 1;
}

} // namespace

int sc_main(int argc, char* argv[]) {
  try {
    return run(parse(argc, argv));
  } catch (const std::exception& thrown) { // of the kernel, or memory for a region
    fail(thrown.what());
  }
}
