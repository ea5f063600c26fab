// A program of the NPU on a platform of five modules. README.md says what the options do.
#include "platform.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

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

struct Arguments {
  std::string program, configuration, vcd;
  std::map<std::string, std::string> set, dump;
  double traffic = 0;
  Fidelity fidelity = Fidelity::kAccurate;
};

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  const auto assign = [](std::map<std::string, std::string>& to, const std::string& text) {
    const size_t at = text.find('=');
    if (at == text.npos) fail(text + ": REGION=FILE is wanted");
    to[text.substr(0, at)] = text.substr(at + 1);
  };
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--fast") {
      arguments.fidelity = Fidelity::kFast;
      continue;
    }
    if (!option.starts_with("--")) {
      arguments.program = option;
      continue;
    }
    const std::string value = ++i < argc ? argv[i] : "";
    if (value.empty()) fail(option + ": a value is wanted");
    if (option == "--npu") {
      arguments.configuration = value;
    } else if (option == "--set") {
      assign(arguments.set, value);
    } else if (option == "--dump") {
      assign(arguments.dump, value);
    } else if (option == "--vcd") {
      arguments.vcd = value;
    } else if (option == "--traffic") {
      char* end = nullptr;
      arguments.traffic = std::strtod(value.c_str(), &end);
      if (*end || !(arguments.traffic > 0 && arguments.traffic < 1e9))
        fail("--traffic " + value + ": MB/s above 0 and below 1e9 are wanted");
    } else {
      fail(option + ": there are --npu, --set, --dump, --traffic, --fast and --vcd");
    }
  }
  if (arguments.program.empty()) fail("PROGRAM.npubin is wanted; README.md says where one comes from");
  return arguments;
}

} // namespace

int sc_main(int argc, char* argv[]) {
  const Arguments arguments = parse(argc, argv);
  const Result<Binary> binary = readBinary(readFile(arguments.program));
  if (!binary) fail(arguments.program + ": " + binary.message());
  const Result<Configuration> configuration =
      findConfiguration(arguments.configuration.empty() ? binary->configurationName : arguments.configuration);
  if (!configuration) fail(configuration.message());

  std::vector<std::vector<std::byte>> regions;
  std::map<std::string, size_t> known;
  for (const Region& region : binary->regions) {
    known[region.name] = regions.size();
    regions.emplace_back(region.bytes);
    if (region.kind == RegionClass::kConstants) regions.back().assign(binary->constants.begin(), binary->constants.end());
  }
  for (const auto* named : {&arguments.set, &arguments.dump})
    for (const auto& [name, path] : *named)
      if (!known.contains(name)) fail(name + "=" + path + ": the program has no such region");
  for (const auto& [name, path] : arguments.set) {
    std::vector<std::byte> bytes = readFile(path);
    std::vector<std::byte>& region = regions[known[name]];
    if (bytes.size() != region.size())
      fail(path + ": " + std::to_string(bytes.size()) + " bytes, region '" + name + "' has " + std::to_string(region.size()));
    region = std::move(bytes);
  }

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
  npu.setSymbols(binary->symbols);
  sc_core::sc_trace_file* const vcd = arguments.vcd.empty() ? nullptr : sc_core::sc_create_vcd_trace_file(arguments.vcd.c_str());
  if (vcd) npu.trace(vcd);
  sc_core::sc_start();
  if (vcd) sc_core::sc_close_vcd_trace_file(vcd);

  if (!npu.report()) std::fprintf(stderr, "virtual_platform: %s: %s\n", arguments.program.c_str(), npu.report().message().c_str());
  if (npu.report() && npu.report()->fault) std::fprintf(stderr, "%s\n", npu.report()->fault->message.c_str());
  for (const auto& [name, path] : arguments.dump) {
    const std::vector<std::byte>& region = regions[known[name]];
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(region.data()), static_cast<std::streamsize>(region.size()));
    if (!file.flush()) fail(path + ": it cannot be written");
  }
  return driver.hasPassed() ? 0 : 1;
}
