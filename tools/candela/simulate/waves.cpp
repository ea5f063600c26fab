#include "tools/candela/simulate/waves.h"

#include <fmt/format.h>

#include <filesystem>

#include "simulator/rtl_model/library.h"

namespace candela::tool {

namespace fs = std::filesystem;

void WaveArguments::addTo(CLI::App* command) {
  command
      ->add_option("--trace-vcd", file,
                   "with --engine rtl: write all signals, for GTKWave and its like; of a network's "
                   "second program FILE.2")
      ->type_name("FILE");
  command->add_option("--from", from, "the first cycle of a program that --trace-vcd has (0)")
      ->type_name("CYCLE");
  command->add_option("--to", to, "the last cycle that --trace-vcd has (the program's last)")
      ->type_name("CYCLE");
}

void WaveArguments::check(const std::string& engine) const {
  if (file.empty()) {
    if (from != 0 || to != -1) fail(kBadInput, "--from, --to: of which --trace-vcd FILE?");
    return;
  }
  if (engine != "rtl") fail(kBadInput, "--trace-vcd {}: --engine rtl alone has signals", file);
  if (from < 0 || (to != -1 && to < from))
    fail(kBadInput, "--from {} --to {}: cycles from 0 on, the last one not before the first", from,
         to);
  if (const fs::path folder = fs::path(file).parent_path();
      !folder.empty() && !fs::is_directory(folder))
    fail(kBadInput, "--trace-vcd {}: there is no folder '{}'", file, folder.string());
}

npu::WaveOptions WaveArguments::options() const {
  npu::WaveOptions options;
  options.file = file;
  options.from = from;
  if (to >= 0) options.to = to;
  return options;
}

std::vector<std::string> WaveArguments::backendOptions() const {
  if (file.empty()) return {};
  return {"waves=" + fs::absolute(file).string(), fmt::format("waves_from={}", from),
          fmt::format("waves_to={}", to)};
}

void sayHardwareIsBuilt(const npu::Configuration& configuration, const WaveArguments& waves,
                        Console& console) {
  const auto kind =
      waves.file.empty() ? npu::RtlLibrary::Kind::kPlain : npu::RtlLibrary::Kind::kWaves;
  const auto places = npu::RtlLibrary::findPlaces();
  if (!places || npu::RtlLibrary::isMade(configuration, *places, kind)) return;
  console.note("the hardware of {} is built first, by Verilator and a compiler, and kept in {}",
               configuration.name, places->cache.string());
}

} // namespace candela::tool
