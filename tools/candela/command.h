#pragma once

#include <CLI/CLI.hpp>

#include "tools/candela/console.h"

namespace candela::tool {

// Each adds one sub-command with its options. Parsing the command line runs it: the callback returns normally on
// success and throws Failure otherwise.
void addRun(CLI::App& app, Console& console);
void addBench(CLI::App& app, Console& console);
void addCompile(CLI::App& app, Console& console);
void addBackends(CLI::App& app, Console& console);
void addDebug(CLI::App& app, Console& console);
void addInspect(CLI::App& app, Console& console);
void addOpt(CLI::App& app, Console& console);
void addLower(CLI::App& app, Console& console);
void addPlan(CLI::App& app, Console& console);
void addConform(CLI::App& app, Console& console);
void addSimulate(CLI::App& app, Console& console);
void addNpu(CLI::App& app, Console& console);

/// --json FILE
inline void addJsonOption(CLI::App* command, Console& console) {
  command->add_option("--json", console.jsonPath, "write a report as JSON; - is stdout, which then holds nothing else")
      ->type_name("FILE");
}

/// An option that takes one value each time it is given.
inline CLI::Option* addRepeated(CLI::App* command, const std::string& name, std::vector<std::string>& values,
                                const std::string& help, const std::string& type) {
  return command->add_option(name, values, help)->type_name(type)->allow_extra_args(false);
}

} // namespace candela::tool
