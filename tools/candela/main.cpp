// candela: the one command-line tool. Each sub-command is a file here.
#include <algorithm>
#include <new>

#include "candela/candela.hpp"
#include "tools/candela/command.h"
#include "tools/candela/new_backend.h"

namespace {

using namespace candela::tool;

constexpr const char* kFooter = R"(Example:
  candela run digits.onnx --backend soft --input images=test_images.npy --labels test_labels.npy

Exit status: 0 success, 1 the work failed (a mismatch, a failed case, an unwritable file), 2 bad usage or bad input.
Backends are named (reference: the slow oracle; soft: the portable host executor; any plugin on the plugin path) or
given as the path of a plugin. `candela backends` lists them; CANDELA_PLUGIN_PATH adds folders.)";

int report(int exitCode, const std::string& message) {
  fmt::print(stderr, "error: {}\n", message);
  return exitCode;
}

int run(int argc, char** argv) {
  std::string commandLine = "candela";
  for (int i = 1; i < argc; ++i) commandLine += " " + shellQuoted(argv[i]);
  Console console(commandLine);

  CLI::App app("Candela: compile ONNX models for accelerators, run them, and check backends.", "candela");
  app.footer(kFooter);
  app.set_version_flag("--version", candela_version(), "print the version");
  app.set_help_flag("-h,--help", "print this help");
  app.require_subcommand(1);
  addRun(app, console);
  addBench(app, console);
  addCompile(app, console);
  addDebug(app, console);
  addBackends(app, console);
  addInspect(app, console);
  addOpt(app, console);
  addLower(app, console);
  addPlan(app, console);
  addConform(app, console);
  addSimulate(app, console);
  addNpu(app, console);
  addNewBackend(app, console);
  // CLI11 would only say that a command is missing.
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  if (argc > 1 && argv[1][0] != '-' && std::find(names.begin(), names.end(), argv[1]) == names.end())
    return report(kBadInput, fmt::format("no command is named '{}'; there are {}", argv[1], fmt::join(names, ", ")));
  try {
    app.parse(argc, argv);
    console.finish();
    return kSuccess;
  } catch (const CLI::Success& request) { // --help, --version
    std::ostringstream out, unused;
    app.exit(request, out, unused);
    console.print("{}", out.str());
    console.finish();
    return kSuccess;
  } catch (const CLI::ParseError& error) {
    std::string message = error.what();
    while (!message.empty() && (message.back() == '\n' || message.back() == '.')) message.pop_back();
    return report(kBadInput, message + "; see candela --help");
  } catch (const Failure& failure) {
    // What was printed before stays readable in front of the message.
    std::fflush(stdout);
    return report(failure.exitCode(), failure.what());
  }
}

} // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) { return report(kWorkFailed, "out of memory"); } catch (const std::exception& error) {
    return report(kWorkFailed, error.what());
  }
}
