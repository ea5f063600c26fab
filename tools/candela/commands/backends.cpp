// candela backends: what can be found, and what a port should do next.
#include <algorithm>

#include "core/support/text/name.h"
#include "tools/candela/commands/next.h"

namespace candela::tool {
namespace {

constexpr const char* kFooter = R"(Examples:
  candela backends
  candela backends ./libacme.so --next resnet50.onnx bert.onnx --dim N=1

--next runs each model on each plugin that is named, or on all that are found, with random
inputs, and lists the rows that it does not run natively, by their part of the time: level B1 is
a required row of the primitives, B2 an op or a function that has a decomposition. Of a port
that declares layouts the cases on layouts are named too. Parts overlap: an op's row takes all
of a node, those of primitives a part of each.)";

struct Arguments {
  std::vector<std::string> paths, next;
  ModelOptions model; ///< --dim and --shape for the models of --next
};

std::string names(const Json& list) {
  std::string text;
  for (const Json& item : list) {
    const Json name = item.is_object() ? item.value("name", Json("")) : item;
    if (!text.empty()) text += " ";
    text += name.is_string() ? name.get<std::string>() : name.dump();
  }
  return text;
}

/// What the list of backends holds.
struct Found {
  Table table{
      {"backend", "version", "device", "profiles", "native rows", "emulated rows", "options"}};
  std::vector<std::pair<std::string, std::string>> problems; ///< name, what is wrong
  std::vector<std::string> plugins;                          ///< for --next
  std::vector<std::string> idle;                             ///< rows that never answer
};

/// `files`: those of the arguments that are paths.
void addBackend(Found& found, const Json& backend, const std::vector<std::string>& arguments,
                const std::vector<std::string>& files) {
  const std::string name = backend.value("name", ""), origin = backend.value("origin", "");
  const Json error = backend.value("error", Json());
  if (error.is_string() && !error.get<std::string>().empty()) {
    found.problems.emplace_back(name.empty() ? origin : name, error.get<std::string>());
    return;
  }
  const auto file = std::ranges::find(files, fileName(origin), fileName);
  const bool isFile = file != files.end(), isPlugin = name != "soft" && name != "reference";
  const bool asked = arguments.empty() || isFile || std::ranges::count(arguments, name) > 0;
  // What is given by its path may be found by its name as well.
  const std::string given = isFile ? *file : name;
  if (isPlugin && asked && !std::ranges::count(found.plugins, given))
    found.plugins.push_back(given);
  const Json devices = backend.value("devices", Json::array()),
             options = backend.value("options", Json::array());
  if (devices.empty())
    found.table.add({name, backend.value("version", ""), "", "", "", "", names(options)});
  uint32_t index = 0;
  for (const Json& device : devices) {
    const Json rows = device.value("rows", Json::object());
    found.table.add({text::deviceNameText(name, index++), backend.value("version", ""),
                     device.value("name", ""), names(device.value("profiles", Json::array())),
                     fmt::format("{}", rows.value("native", 0)),
                     fmt::format("{}", rows.value("emulated", 0)), names(options)});
    for (const Json& space : device.value("spaces", Json::array()))
      if (asked && !space.value("used", true))
        found.idle.push_back(fmt::format("{}: nothing is placed in space '{}': it is neither the "
                                         "first one nor LOCAL",
                                         name, space.value("name", "")));
    for (const Json& row : rows.value("idle", Json::array()))
      if (asked)
        found.idle.push_back(fmt::format("{}: row {} ({}) never answers: {}", name,
                                         row.value("row", 0), row.value("text", ""),
                                         row.value("why", "")));
  }
}

/// --next, for each plugin that was found.
Json nextOfAll(const Arguments& arguments, const std::vector<std::string>& files,
               const std::vector<std::string>& plugins, Console& console) {
  for (const std::string& path : arguments.paths)
    if (std::ranges::find(files, path) == files.end() &&
        std::ranges::find(plugins, path) == plugins.end())
      fail(kBadInput,
           "{}: no plugin of this name is found; give its path, or set CANDELA_PLUGIN_PATH", path);
  Json next = Json::array();
  for (const std::string& plugin : plugins)
    next.push_back(nextSteps(arguments.next, arguments.model, plugin, console));
  if (plugins.empty())
    console.print("no plugin found for --next: give its path, or set CANDELA_PLUGIN_PATH\n");
  return next;
}

void backends(const Arguments& arguments, Console& console) {
  // Names are among what is found.
  std::vector<std::string> files;
  for (const std::string& path : arguments.paths)
    if (path.find('/') != std::string::npos || endsWith(path, ".so")) files.push_back(path);
  const Json known = Json::parse(sdk::Model::backendsJson(files), nullptr, false);
  if (!known.is_object() || !known.contains("backends"))
    fail(kWorkFailed, "the list of backends is not what it should be");
  Found found;
  for (const Json& backend : known["backends"]) addBackend(found, backend, arguments.paths, files);
  console.printText(found.table.text(0));
  for (const auto& [name, problem] : found.problems) // which may begin with its name
    console.print("{}  {}{}\n", console.red("unusable"),
                  problem.starts_with(name) ? "" : name + ": ", problem);
  for (const std::string& row : found.idle) console.print("{}\n", row);
  Json report = console.report("backends");
  report["backends"] = known["backends"];
  if (!arguments.next.empty()) report["next"] = nextOfAll(arguments, files, found.plugins, console);
  console.writeJson(report);
  // A plugin that was asked for by path has to load; one that merely lies on the plugin path need
  // not.
  for (const std::string& path : arguments.paths)
    for (const auto& [name, problem] : found.problems)
      if (name.find(fileName(path)) != std::string::npos ||
          problem.find(fileName(path)) != std::string::npos) {
        console.finish();
        fail(kBadInput, "{}",
             problem.find(path) != std::string::npos ? problem : path + ": " + problem);
      }
}

} // namespace

void addBackends(CLI::App& app, Console& console) {
  auto* command = app.add_subcommand(
      "backends", "List backends: devices, profiles, native rows; say what a port should do next.");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("PLUGIN", arguments->paths, "plugins by path, beside those that are found")
      ->type_name("FILE...");
  command->add_option("--next", arguments->next, "list what to implement next for these models")
      ->type_name("MODEL...");
  addRepeated(command, "--dim", arguments->model.dims,
              "with --next: the value of a symbolic dimension", "NAME=VALUE");
  addRepeated(command, "--option", arguments->model.options, "with --next: an option of the plugin",
              "KEY=VALUE");
  addRepeated(command, "--shape", arguments->model.shapes, "with --next: the shape of an input",
              "NAME=DIMS");
  addJsonOption(command, console);
  command->footer(kFooter);
  command->callback([arguments, &console] { backends(*arguments, console); });
}

} // namespace candela::tool
