// candela backends: what can be found, and what a port should do next.
#include <algorithm>
#include <map>

#include "tools/candela/model.h"

namespace candela::tool {
namespace {

constexpr const char* kFooter = R"(Examples:
  candela backends
  candela backends ./libacme.so --next resnet50.onnx bert.onnx --dim N=1

--next compiles each model for each plugin and lists, by their part of the multiply-accumulates, the ops that the plugin
does not run itself.)";

struct Arguments {
  std::vector<std::string> paths, next;
  ModelOptions model; ///< --dim and --shape for the models of --next
};

/// The work of one op that a backend leaves to the host.
struct Missing {
  uint64_t nodes = 0, macs = 0;
  std::string why; ///< of the first node
};

std::string names(const Json& list) {
  std::string text;
  for (const Json& item : list) {
    const Json name = item.is_object() ? item.value("name", Json("")) : item;
    text += (text.empty() ? "" : " ") + (name.is_string() ? name.get<std::string>() : name.dump());
  }
  return text;
}

/// What `backend` should implement next for these models, heaviest first.
Json nextSteps(const Arguments& arguments, const std::string& backend, Console& console) {
  std::map<std::string, Missing> missing;
  uint64_t nodes = 0, macs = 0;
  for (const std::string& path : arguments.next) {
    ModelOptions options = arguments.model;
    options.path = path;
    options.backends = backend;
    const Json report = placementReport(compileModel(options));
    for (const Json& node : report.value("nodes_detail", Json::array())) {
      const uint64_t nodeMacs = node.value("macs", uint64_t(0));
      ++nodes;
      macs += nodeMacs;
      if (node.value("class", "") == "native") continue;
      Missing& entry = missing[node.value("op", "")];
      if (entry.nodes == 0) entry.why = node.value("why", "");
      ++entry.nodes;
      entry.macs += nodeMacs - std::min(nodeMacs, node.value("native_macs", uint64_t(0)));
    }
  }
  std::vector<std::pair<std::string, Missing>> sorted(missing.begin(), missing.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second.macs, a.second.nodes) > std::pair(b.second.macs, b.second.nodes);
  });
  Table table({"next", "nodes", "MACs", "why"});
  Json list = Json::array();
  for (const auto& [op, entry] : sorted) {
    const double part = macs ? double(entry.macs) / double(macs) : 0;
    table.add({op, fmt::format("{}", entry.nodes), fmt::format("{:.1f} %", 100 * part), entry.why});
    list.push_back(
        {{"op", op}, {"nodes", entry.nodes}, {"macs", entry.macs}, {"mac_fraction", part}, {"why", entry.why}});
  }
  console.print("\n{}  {} nodes in {} model{}\n", console.bold(backend), nodes, arguments.next.size(),
                arguments.next.size() == 1 ? "" : "s");
  console.print("{}", table.empty() ? std::string("  every node is native\n") : table.text());
  return {{"backend", backend}, {"nodes", nodes}, {"macs", macs}, {"next", std::move(list)}};
}

void backends(const Arguments& arguments, Console& console) {
  const Json known = Json::parse(sdk::Model::backendsJson(arguments.paths), nullptr, false);
  if (!known.is_object() || !known.contains("backends"))
    fail(kWorkFailed, "the list of backends is not what it should be");
  Table table({"backend", "version", "device", "profiles", "native rows", "emulated rows", "options"});
  std::vector<std::pair<std::string, std::string>> problems;
  std::vector<std::string> plugins;
  for (const Json& backend : known["backends"]) {
    const std::string name = backend.value("name", ""), origin = backend.value("origin", "");
    const Json error = backend.value("error", Json());
    if (error.is_string() && !error.get<std::string>().empty()) {
      problems.emplace_back(name.empty() ? origin : name, error.get<std::string>());
      continue;
    }
    const bool given = std::any_of(arguments.paths.begin(), arguments.paths.end(),
                                   [&](const std::string& path) { return fileName(path) == fileName(origin); });
    if (name != "soft" && name != "reference") plugins.push_back(given ? origin : name);
    const Json devices = backend.value("devices", Json::array()), options = backend.value("options", Json::array());
    if (devices.empty()) table.add({name, backend.value("version", ""), "", "", "", "", names(options)});
    for (const Json& device : devices) {
      const Json rows = device.value("rows", Json::object());
      table.add({name, backend.value("version", ""), device.value("name", ""),
                 names(device.value("profiles", Json::array())), fmt::format("{}", rows.value("native", 0)),
                 fmt::format("{}", rows.value("emulated", 0)), names(options)});
    }
  }
  console.print("{}", table.text(0));
  for (const auto& [name, problem] : problems) console.print("{}  {}: {}\n", console.red("unusable"), name, problem);
  Json report = console.report("backends");
  report["backends"] = known["backends"];
  if (!arguments.next.empty()) {
    report["next"] = Json::array();
    for (const std::string& plugin : plugins) report["next"].push_back(nextSteps(arguments, plugin, console));
    if (plugins.empty()) console.print("no plugin found for --next: give its path, or set CANDELA_PLUGIN_PATH\n");
  }
  console.writeJson(report);
  // A plugin that was asked for by path has to load; one that merely lies on the plugin path need not.
  for (const std::string& path : arguments.paths)
    for (const auto& [name, problem] : problems)
      if (name.find(fileName(path)) != std::string::npos || problem.find(fileName(path)) != std::string::npos) {
        console.finish();
        fail(kBadInput, "{}", problem.find(path) != std::string::npos ? problem : path + ": " + problem);
      }
}

} // namespace

void addBackends(CLI::App& app, Console& console) {
  auto* command =
      app.add_subcommand("backends", "List backends: devices, profiles, native rows; say what a port should do next.");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("PLUGIN", arguments->paths, "plugins by path, beside those that are found")->type_name("FILE...");
  command->add_option("--next", arguments->next, "list what to implement next for these models")->type_name("MODEL...");
  addRepeated(command, "--dim", arguments->model.dims, "with --next: the value of a symbolic dimension", "NAME=VALUE");
  addRepeated(command, "--shape", arguments->model.shapes, "with --next: the shape of an input", "NAME=DIMS");
  addJsonOption(command, console);
  command->footer(kFooter);
  command->callback([arguments, &console] { backends(*arguments, console); });
}

} // namespace candela::tool
