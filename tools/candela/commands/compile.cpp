// candela compile: a model becomes a bundle.
#include <algorithm>
#include <filesystem>

#include "core/support/file.h"
#include "tools/candela/support/io_layout.h"
#include "tools/candela/support/model.h"

namespace candela::tool {
namespace {

constexpr const char* kFooter = R"(Example:
  candela compile detector.onnx --backend acme,soft --dim N=1 -o detector.cdb --explain
  candela run detector.cdb --input image=image.npy)";

struct Arguments {
  ModelOptions model;
  std::string output;
  bool explain = false;
};

void compile(Arguments& arguments, Console& console) {
  const std::string& path = arguments.model.path;
  refuseBundle(path);
  if (arguments.output.empty()) fail(kBadInput, "-o: a file is needed");
  const std::vector<std::string> backends = splitList(arguments.model.backends);
  if (std::find(backends.begin(), backends.end(), "reference") != backends.end())
    fail(kBadInput,
         "--backend reference: the reference runs graphs as they are, it makes no bundle");
  layOutBorders(arguments.model);
  const auto start = std::chrono::steady_clock::now();
  const sdk::Model model = compileModel(arguments.model);
  const double compileMs = millisecondsSince(start);
  try {
    model.save(arguments.output);
  } catch (const sdk::Error& error) {
    const std::string message = error.what();
    throw Failure(kWorkFailed, message.find(arguments.output) != std::string::npos
                                   ? message
                                   : arguments.output + ": " + message);
  }
  std::error_code unknown;
  const auto size = std::filesystem::file_size(arguments.output, unknown);
  const Json placement = placementReport(model);
  if (arguments.explain) console.printText(explainText(placement));
  console.print("{}  {}   compiled in {}; written {}{}\n", console.bold(fileName(path)),
                placementLine(placement), timeText(compileMs), arguments.output,
                unknown ? "" : fmt::format(" ({})", bytesText(size)));
  Json report = console.report("compile");
  report["model"] = path;
  report["output"] = arguments.output;
  if (!unknown) report["bytes"] = size;
  report["compile_ms"] = compileMs;
  addPlacement(report, placement, true);
  console.writeJson(report);
}

} // namespace

void addCompile(CLI::App& app, Console& console) {
  auto* command = app.add_subcommand(
      "compile", "Compile a model into a bundle (.cdb) that `candela run` and the runtime load.");
  auto arguments = std::make_shared<Arguments>();
  arguments->model.addTo(command);
  arguments->model.addIoLayoutTo(command);
  arguments->model.addStatesTo(command);
  command->add_option("-o,--output", arguments->output, "the bundle")
      ->required()
      ->type_name("FILE.cdb");
  command->add_flag("--explain", arguments->explain, "per node: native, emulated or host, and why");
  addJsonOption(command, console);
  command->footer(kFooter);
  command->callback([arguments, &console] { compile(*arguments, console); });
}

} // namespace candela::tool
