// candela npu run: a program of the NPU on the functional model.
#include <cstring>
#include <map>

#include "core/support/file.h"
#include "simulator/config/preset.h"
#include "simulator/isa/assembler.h"
#include "simulator/npu_device.h"
#include "tools/candela/commands/npu.h"
#include "tools/candela/simulate/waves.h"
#include "tools/candela/support/command.h"

namespace candela::tool {
namespace {

constexpr const char* kFooter = R"(Examples:
  candela npu run conv.npu --set input=image.bin --show output=i8
  candela npu run conv.npubin --npu gem16 --dump output=result.bin --json -

Runs a text or a binary without time: bit-exact, and stopped at the first race, uninitialised
read, address outside of its memory, bad instruction or deadlock. A region that --set does not
name is zero. Exit status 1: it was stopped.
--engine rtl runs it on the hardware description, with its cycles: Verilator builds that of a
configuration when it is first asked for, a minute or more, and keeps it in the cache folder.
Hardware looks for no races and no uninitialised reads.)";

constexpr size_t kProfileRecords = 65536; ///< 2 MiB

struct Arguments {
  std::string input, configuration, trace, engine = "func";
  std::vector<std::string> set, dump, show;
  bool plain = false, lockstep = false;
  WaveArguments waves;
  std::string profile;
};

npu::Binary readProgram(const std::string& path,
                        const std::optional<npu::Configuration>& configuration) {
  const Bytes bytes = check(mapFile(path));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text.substr(0, 6) == "CDLNPU" ? readNpuBinary(path)
                                       : checkNpu(npu::assemble(text, path, configuration));
}

/// NAME=VALUE of an option that names a region.
std::map<uint32_t, std::string> regionsOf(const std::vector<std::string>& options,
                                          const npu::Binary& program, const char* option) {
  std::map<uint32_t, std::string> found;
  for (const std::string& text : options) {
    const size_t at = text.find('=');
    uint32_t region = 0;
    while (region < program.regions.size() && program.regions[region].name != text.substr(0, at))
      ++region;
    if (at == text.npos || region == program.regions.size())
      fail(kBadInput, "{} {}: REGION=VALUE is wanted, and the program's region", option, text);
    found[region] = text.substr(at + 1);
  }
  return found;
}

std::string valuesText(std::span<const std::byte> memory, const std::string& type) {
  const std::map<std::string, size_t> sizes{
      {"i8", 1}, {"u8", 1}, {"i16", 2}, {"i32", 4}, {"i64", 8}};
  const auto known = sizes.find(type);
  if (known == sizes.end())
    fail(kBadInput, "--show: type '{}' is none of i8, u8, i16, i32, i64", type);
  std::string text;
  const size_t step = known->second, perLine = step > 2 ? 8 : 16;
  for (size_t i = 0; i < memory.size() / step; ++i) {
    int64_t value = 0;
    std::memcpy(&value, memory.data() + i * step, step);
    if (type == "i8") value = static_cast<int8_t>(value);
    if (type == "i16") value = static_cast<int16_t>(value);
    if (type == "i32") value = static_cast<int32_t>(value);
    text +=
        fmt::format("{}{}", value, (i + 1) % perLine && i + 1 < memory.size() / step ? ' ' : '\n');
  }
  return text;
}

Json countersJson(const npu::RunReport& run) {
  Json json;
  for (const npu::CounterInfo& info : npu::kCounters)
    if (run.hasTime || !info.isTiming)
      json[std::string(info.name)] = run.counters[static_cast<size_t>(info.id)];
  return json;
}

std::string countersText(const npu::RunReport& run) {
  Table table({"count", "of"});
  for (const npu::CounterInfo& info : npu::kCounters)
    if (const uint64_t value = run.counters[static_cast<size_t>(info.id)];
        value && (run.hasTime || !info.isTiming))
      table.add({fmt::format("{}", value), std::string(info.name)});
  return table.text(0);
}

void readRegion(const std::string& path, const npu::Region& region,
                std::vector<std::byte>& memory) {
  const Bytes bytes = check(mapFile(path));
  if (bytes.size() != region.bytes)
    fail(kBadInput, "{}: {} bytes, region '{}' has {}", path, bytes.size(), region.name,
         region.bytes);
  std::memcpy(memory.data(), bytes.data(), bytes.size());
}

std::unique_ptr<npu::Device> makeDevice(const Arguments& arguments,
                                        const npu::Configuration& configuration,
                                        npu::FunctionalOptions options) {
  if (arguments.engine != "func" && arguments.engine != "rtl")
    fail(kBadInput, "--engine {}: there are func and rtl", arguments.engine);
  if (arguments.lockstep && arguments.engine != "rtl")
    fail(kBadInput, "--lockstep: --engine rtl is wanted, which has cycles of its own");
  if (arguments.engine == "rtl" && !arguments.trace.empty())
    fail(kBadInput, "--trace {}: --engine rtl knows no checksums", arguments.trace);
  arguments.waves.check(arguments.engine);
  if (!arguments.profile.empty() && (arguments.engine != "rtl" || arguments.lockstep))
    fail(kBadInput,
         "--profile {}: --engine rtl writes records, and not in lockstep: their bursts "
         "take cycles that the model does not have",
         arguments.profile);
  if (arguments.engine == "func")
    return npu::makeFunctionalDevice(configuration, std::move(options));
  npu::TimedOptions timed;
  timed.functional = std::move(options);
  timed.isLockstep = arguments.lockstep;
  timed.waves = arguments.waves.options();
  if (!arguments.profile.empty()) timed.profileRecords = kProfileRecords;
  return npu::makeRtlDevice(configuration, std::move(timed));
}

/// The records of marked instructions as CSV.
void writeProfile(const std::string& path, const npu::RunReport& run, Console& console) {
  std::string text = "instruction,engine,tag,start,done\n";
  for (const npu::ProfileRecord& record : run.profile)
    text += fmt::format("{},{},{},{},{}\n", record.instruction, npu::engineName(record.engine),
                        record.tag, record.start, record.done);
  check(writeFile(path, text.data(), text.size()), kWorkFailed);
  if (run.profileLost)
    console.note("{}: {} marked instructions have no record", path, run.profileLost);
}

void runProgram(const Arguments& arguments, Console& console) {
  std::optional<npu::Configuration> configuration;
  if (!arguments.configuration.empty())
    configuration = checkNpu(npu::findConfiguration(arguments.configuration));
  npu::Binary binary = readProgram(arguments.input, configuration);
  if (!configuration) configuration = checkNpu(npu::findPreset(binary.configurationName));
  npu::FunctionalOptions options;
  options.plainKernels = arguments.plain;
  std::string trace = npu::traceHeader(false);
  if (!arguments.trace.empty())
    options.onRetire = [&](const npu::RetireRecord& record) {
      trace += npu::traceLine(record, false);
    };
  const auto device = makeDevice(arguments, *configuration, std::move(options));
  if (const npu::Outcome bad = device->load(std::move(binary)))
    fail(kBadInput, "{}: {}", arguments.input, bad->message);
  const npu::Binary& program = device->program();
  const auto set = regionsOf(arguments.set, program, "--set"),
             dump = regionsOf(arguments.dump, program, "--dump");
  const auto show = regionsOf(arguments.show, program, "--show");
  std::vector<std::vector<std::byte>> memory(program.regions.size());
  for (uint32_t i = 0; i < memory.size(); ++i) {
    const npu::Region& region = program.regions[i];
    if (region.kind == npu::RegionClass::kConstants) continue;
    memory[i].resize(region.bytes);
    if (const auto given = set.find(i); given != set.end())
      readRegion(given->second, region, memory[i]);
    if (const npu::Outcome bad = device->bind(i, memory[i]))
      fail(kBadInput, "{}: {}", arguments.input, bad->message);
  }
  if (arguments.engine == "rtl") sayHardwareIsBuilt(*configuration, arguments.waves, console);
  const npu::RunReport run = checkNpu(device->run());
  for (const auto& [region, type] : show)
    console.printText(fmt::format("{}:\n{}", shownCell(program.regions[region].name),
                                  valuesText(memory[region], type)));
  for (const auto& [region, path] : dump)
    check(writeFile(path, memory[region].data(), memory[region].size()), kWorkFailed);
  if (!arguments.trace.empty())
    check(writeFile(arguments.trace, trace.data(), trace.size()), kWorkFailed);
  if (!arguments.profile.empty()) writeProfile(arguments.profile, run, console);
  console.printText(countersText(run));
  if (console.wantsJson()) {
    Json report = console.report("npu_run");
    report["npu"] = configuration->name;
    report["engine"] = arguments.engine;
    report["counters"] = countersJson(run);
    if (run.fault)
      report["fault"] = {{"kind", npu::faultName(run.fault->kind)},
                         {"instruction", run.fault->instruction},
                         {"message", run.fault->message}};
    console.writeJson(report);
  }
  console.finish();
  if (run.fault)
    fail(kWorkFailed, "{}: {}: {}", arguments.input, npu::faultName(run.fault->kind),
         run.fault->message);
}

} // namespace

void addNpuRun(CLI::App* npu, Console& console) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      npu->add_subcommand("run", "Run a program on the functional model, or on the RTL.");
  command->add_option("FILE", arguments->input, "text or binary")->required()->type_name("FILE");
  command->add_option("--npu", arguments->configuration, "preset or .toml; default: the program's")
      ->type_name("CONFIG");
  command
      ->add_option("--engine", arguments->engine,
                   "func; rtl: the hardware description, built when it is first asked for (func)")
      ->type_name("ENGINE");
  command->add_flag(
      "--lockstep", arguments->lockstep,
      "with --engine rtl: stop at the first instruction whose cycles are not those of "
      "the timed model");
  arguments->waves.addTo(command);
  addRepeated(command, "--set", arguments->set, "the bytes of a region before the run",
              "REGION=FILE");
  addRepeated(command, "--dump", arguments->dump, "write a region after the run", "REGION=FILE");
  addRepeated(command, "--show", arguments->show,
              "print a region after the run, as i8, u8, i16, i32 or i64", "REGION=TYPE");
  command
      ->add_option("--trace", arguments->trace,
                   "what each instruction wrote, as CSV (docs/reference/npu_trace.md)")
      ->type_name("FILE");
  command
      ->add_option("--profile", arguments->profile,
                   "with --engine rtl: the records of instructions with `mark`, as CSV")
      ->type_name("FILE");
  command->add_flag("--plain", arguments->plain, "without AVX2, which gives the same bits");
  addJsonOption(command, console);
  command->footer(kFooter);
  command->callback([arguments, &console] { runProgram(*arguments, console); });
}

} // namespace candela::tool
