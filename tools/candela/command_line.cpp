#include "tools/candela/command_line.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>

#include "candela/candela.hpp"
#include "core/support/out_of_memory.h"
#include "tools/candela/commands/new_backend.h"
#include "tools/candela/support/command.h"

namespace candela::tool {
namespace {

constexpr const char* kFooter = R"(Example:
  candela run digits.onnx --backend soft --input images=test_images.npy --labels test_labels.npy

Exit status: 0 success, 1 the work failed (a mismatch, a failed case, an unwritable file), 2 bad
usage or bad input.
Memory, threads or space that the machine has not are errors too (1), as are streams that cannot
be written.
Backends are named (reference: the slow oracle; soft: the portable host executor; any plugin on
the plugin path) or given as the path of a plugin. `candela backends` lists them;
CANDELA_PLUGIN_PATH adds folders.)";

/// Wraps what stands to the right of options and subcommands.
class HelpFormatter : public CLI::Formatter {
public:
  std::string make_option_desc(const CLI::Option* option) const override {
    return wrapped(CLI::Formatter::make_option_desc(option));
  }
  std::string make_subcommand(const CLI::App* command) const override {
    std::ostringstream out;
    CLI::detail::format_help(out, command->get_display_name(true),
                             wrapped(command->get_description()), get_column_width());
    return out.str();
  }

private:
  std::string wrapped(std::string_view text) const {
    const size_t room = kHelpWidth - get_column_width();
    std::string out;
    while (text.size() > room) {
      const size_t space = text.rfind(' ', room);
      if (space == std::string_view::npos) break;
      out.append(text.substr(0, space)) += '\n';
      text.remove_prefix(space + 1);
    }
    return out.append(text);
  }

  static constexpr size_t kHelpWidth = 100;
};

int runParsed(int argc, char** argv) {
  std::string commandLine = "candela";
  for (int i = 1; i < argc; ++i) commandLine += " " + shellQuoted(argv[i]);
  Console console(commandLine);

  CLI::App app("Candela: compile models of ONNX and other formats for accelerators, run them, and "
               "check backends.",
               "candela");
  app.formatter(std::make_shared<HelpFormatter>());
  app.footer(kFooter);
  app.set_version_flag("--version", candela_version(), "print the version");
  app.set_help_flag("-h,--help", "print this help");
  app.require_subcommand(1);
  addRun(app, console);
  addBench(app, console);
  addCompile(app, console);
  addPackage(app, console);
  addDebug(app, console);
  addBackends(app, console);
  addInspect(app, console);
  addOpt(app, console);
  addExport(app, console);
  addLower(app, console);
  addPlan(app, console);
  addConform(app, console);
  addEstimate(app, console);
  addSimulate(app, console);
  addCalibrateHost(app, console);
  addNpu(app, console);
  addQuantize(app, console);
  addTrain(app, console);
  addNewBackend(app, console);
  // CLI11 would only say that a command is missing.
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  if (argc > 1 && argv[1][0] != '-' &&
      std::find(names.begin(), names.end(), argv[1]) == names.end())
    return reportError(kBadInput, fmt::format("no command is named '{}'; there are {}", argv[1],
                                              fmt::join(names, ", ")));
  try {
    app.parse(argc, argv);
    console.finish();
    return kSuccess;
  } catch (const CLI::Success& request) { // --help, --version
    std::ostringstream out, unused;
    app.exit(request, out, unused);
    console.printText(out.str());
    console.finish();
    return kSuccess;
  } catch (const CLI::ParseError& error) {
    std::string message = error.what();
    while (!message.empty() && (message.back() == '\n' || message.back() == '.'))
      message.pop_back();
    return reportError(kBadInput, message + "; see candela --help");
  } catch (const Failure& failure) {
    // What was printed before stays readable in front of the message.
    std::fflush(stdout);
    return reportError(failure.exitCode(), failure.what());
  }
}

} // namespace

int reportError(int exitCode, std::string_view message) noexcept {
  try {
    Console::writeError(fmt::format("error: {}", message));
  } catch (...) {
    std::fputs("error: out of memory\n", stderr);
  } // which may have no place to go: the exit status says it too
  return exitCode;
}

int runCommandLine(int argc, char** argv) noexcept {
  try {
    return runParsed(argc, argv);
  } catch (const OutOfMemory& error) {
    return reportError(kWorkFailed, error.what());
  } catch (const std::bad_alloc&) {
    return reportError(kWorkFailed, "out of memory");
  } catch (const std::exception& error) {
    return reportError(kWorkFailed, error.what());
  } catch (...) {
    return reportError(kWorkFailed, "something was thrown that is no std::exception");
  }
}

} // namespace candela::tool
