#pragma once

#include <CLI/CLI.hpp>

#include "core/support/text/scan.h"
#include "tools/candela/support/console.h"

namespace candela::tool {

// Each adds one sub-command with its options. Parsing the command line runs it: the callback
// returns normally on success and throws Failure otherwise.
void addRun(CLI::App& app, Console& console);
void addBench(CLI::App& app, Console& console);
void addCompile(CLI::App& app, Console& console);
void addBackends(CLI::App& app, Console& console);
void addDebug(CLI::App& app, Console& console);
void addInspect(CLI::App& app, Console& console);
void addOpt(CLI::App& app, Console& console);
void addExport(CLI::App& app, Console& console);
void addLower(CLI::App& app, Console& console);
void addPlan(CLI::App& app, Console& console);
void addConform(CLI::App& app, Console& console);
void addEstimate(CLI::App& app, Console& console);
void addSimulate(CLI::App& app, Console& console);
void addCalibrateHost(CLI::App& app, Console& console);
void addNpu(CLI::App& app, Console& console);
void addPackage(CLI::App& app, Console& console);
void addQuantize(CLI::App& app, Console& console);
void addTrain(CLI::App& app, Console& console);

/// --json FILE
inline void addJsonOption(CLI::App* command, Console& console) {
  command
      ->add_option("--json", console.jsonPath,
                   "write a report as JSON; - is stdout, which then holds nothing else")
      ->type_name("FILE");
}

/// A number from `least` to `most` in decimal, which nan, inf and what a double cannot hold are
/// not.
inline CLI::Validator numberIn(double least, double most) {
  const auto problemOf = [=](const std::string& given) -> std::string {
    const auto value = text::parseNumber<double>(given);
    if (value && *value >= least && *value <= most) return "";
    return fmt::format("'{}' is no number from {} to {}", given, least, most);
  };
  return {problemOf, fmt::format("{} to {}", least, most)};
}
inline constexpr double kLongestSeconds = 86400, kShortestSeconds = 0.1;

/// An option that takes one value each time it is given.
inline CLI::Option* addRepeated(CLI::App* command, const std::string& name,
                                std::vector<std::string>& values, const std::string& help,
                                const std::string& type) {
  return command->add_option(name, values, help)->type_name(type)->allow_extra_args(false);
}

} // namespace candela::tool
