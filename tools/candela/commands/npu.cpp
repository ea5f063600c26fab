// candela npu: programs and configurations of the NPU.
#include "tools/candela/commands/npu.h"

#include "core/support/file.h"
#include "simulator/isa/assembler.h"
#include "tools/candela/support/command.h"

namespace candela::tool {
namespace {

constexpr const char* kFooter = R"(Examples:
  candela npu as conv.npu -o conv.npubin --npu gem16
  candela npu dis conv.npubin
  candela npu config
  candela npu run conv.npu --set input=image.bin --show output=i8
  candela npu config edge4t > mine.toml; candela npu config mine.toml --json -

The instructions are those of docs/reference/npu_isa.md, their text is described in
simulator/isa/README.md. A configuration is the name of a preset or the path of a .toml file.)";

struct Arguments {
  std::string input, output, configuration;
};

void assembleFile(const Arguments& arguments, Console& console) {
  std::optional<npu::Configuration> configuration;
  if (!arguments.configuration.empty())
    configuration = checkNpu(npu::findConfiguration(arguments.configuration));
  const Bytes bytes = check(mapFile(arguments.input));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const npu::Binary binary = checkNpu(npu::assemble(text, arguments.input, configuration));
  const std::vector<std::byte> file = npu::writeBinary(binary);
  check(writeFile(arguments.output, file.data(), file.size()), kWorkFailed);
  console.print("{}: {} instructions, {} bytes of constants, for {}\n", arguments.output,
                binary.code.size(), binary.constants.size(), binary.configurationName);
  Json report = console.report("npu_as");
  report["instructions"] = binary.code.size();
  report["constant_bytes"] = binary.constants.size();
  report["configuration"] = binary.configurationName;
  if (console.wantsJson()) console.writeJson(report);
}

void disassembleFile(const Arguments& arguments, Console& console) {
  const npu::Binary binary = readNpuBinary(arguments.input);
  const npu::Result<std::string> text = npu::disassemble(binary);
  if (!text) fail(kBadInput, "{}: {}", arguments.input, text.message());
  if (arguments.output.empty())
    console.printText(*text);
  else
    check(writeFile(arguments.output, text->data(), text->size()), kWorkFailed);
}

Json configurationJson(const npu::Configuration& configuration) {
  Json json{{"name", configuration.name}, {"hash", fmt::format("{:016x}", configuration.hash())}};
  for (int i = 0; i < npu::key::kCount; ++i) {
    const npu::KeyInfo& info = npu::kKeys[i];
    if (i != npu::key::kName)
      json["values"][std::string(info.name)] =
          info.isString ? Json(configuration.valueText(i)) : Json(configuration[i]);
  }
  return json;
}

void showConfigurations(const Arguments& arguments, Console& console) {
  Json report = console.report("npu_config");
  if (!arguments.configuration.empty()) {
    const npu::Configuration configuration =
        checkNpu(npu::findConfiguration(arguments.configuration));
    console.printText(configuration.toml());
    report["configurations"].push_back(configurationJson(configuration));
  } else {
    Table table(
        {"name", "array", "clock", "scratchpad", "accumulators", "channels", "DRAM", "hash"});
    for (const npu::Preset& preset : npu::presets()) {
      const npu::Configuration c = checkNpu(npu::findConfiguration(std::string(preset.name)));
      table.add(
          {c.name, fmt::format("{} x {}", c.rows(), c.columns()),
           fmt::format("{} MHz", c[npu::key::kClockMhz]),
           fmt::format("{} KiB", c.scratchpadBytes() / 1024),
           fmt::format("{} rows", c.accumulatorRows()),
           fmt::format("{} + {}", c.loadChannels(), c.storeChannels()),
           fmt::format("{} x{}", c.valueText(npu::key::kDramType), c[npu::key::kDramWidthBits]),
           fmt::format("{:016x}", c.hash())});
      report["configurations"].push_back(configurationJson(c));
    }
    console.printText(table.text(0));
  }
  if (console.wantsJson()) console.writeJson(report);
}

CLI::App* addStep(CLI::App* parent, const char* name, const char* text, Console& console) {
  CLI::App* command = parent->add_subcommand(name, text);
  addJsonOption(command, console);
  return command;
}

} // namespace

npu::Binary readNpuBinary(const std::string& path) {
  const Bytes bytes = check(mapFile(path));
  npu::Result<npu::Binary> binary =
      npu::readBinary({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()});
  if (!binary) fail(kBadInput, "{}: {}", path, binary.message());
  return *std::move(binary);
}

void addNpu(CLI::App& app, Console& console) {
  CLI::App* npu = app.add_subcommand("npu", "Assemble, disassemble and list what runs on the NPU.");
  npu->require_subcommand(1);
  npu->footer(kFooter);
  auto arguments = std::make_shared<Arguments>();

  CLI::App* as = addStep(npu, "as", "Assemble a program.", console);
  as->add_option("FILE", arguments->input, "the text")->required()->type_name("FILE");
  as->add_option("-o,--output", arguments->output, "the binary")->required()->type_name("FILE");
  as->add_option("--npu", arguments->configuration, "preset or .toml; default: the text's .config")
      ->type_name("CONFIG");
  as->callback([arguments, &console] { assembleFile(*arguments, console); });

  CLI::App* dis = npu->add_subcommand("dis", "Print the text of a binary.");
  dis->add_option("FILE", arguments->input, "the binary")->required()->type_name("FILE");
  dis->add_option("-o,--output", arguments->output, "the text (default: stdout)")
      ->type_name("FILE");
  dis->callback([arguments, &console] { disassembleFile(*arguments, console); });

  CLI::App* config =
      addStep(npu, "config", "List the presets, or show one configuration as TOML.", console);
  config->add_option("CONFIG", arguments->configuration, "preset or .toml")->type_name("CONFIG");
  config->callback([arguments, &console] { showConfigurations(*arguments, console); });

  addNpuRun(npu, console);
}

} // namespace candela::tool
