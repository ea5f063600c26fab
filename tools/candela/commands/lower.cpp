// candela lower: what a model becomes for a backend.
#include <filesystem>

#include "core/compiler/capabilities/rows.h"
#include "core/support/file.h"
#include "core/support/text/scan.h"
#include "tools/candela/support/ir_file.h"
#include "tools/candela/support/lowered.h"

namespace candela::tool {
namespace {

constexpr const char* kFooter = R"(Examples:
  candela lower digits.onnx --dim N=1 --to primitives -o digits.cdl
  candela run digits.cdl --random 1
  candela lower digits.onnx --dim N=1 --graph

Prints the Program of every partition, its instructions counted in a comment. With -o constants
of more than 64 elements lie beside the file; several partitions are several files: F.0.cdl,
F.1.cdl. --graph: the lowered graphs instead.)";

struct Arguments {
  ModelOptions model;
  std::string to, output;
  bool graph = false, keepOrder = false;
};

/// F.cdl, or F.0.cdl, F.1.cdl when there are several.
std::string partFile(const std::string& output, size_t index, size_t count) {
  if (count == 1) return output;
  const std::filesystem::path path(output);
  return (path.parent_path() /
          fmt::format("{}.{}{}", path.stem().string(), index, path.extension().string()))
      .string();
}

void lower(Arguments& arguments, Console& console) {
  if (!arguments.to.empty() && arguments.to != "primitives")
    fail(kBadInput, "--to {}: only 'primitives' is known", arguments.to);
  ModelOptions& options = arguments.model;
  refuseBundle(options.path);
  options.toPrimitives |= arguments.to == "primitives";
  driver::CompileOptions compile;
  compile.schedule = {!arguments.keepOrder, options.rematerialize};
  const LoweredModel lowered = lowerModel(options, compile);
  const std::vector<driver::LoweredPart>& parts = lowered.parts;
  const std::vector<std::string>& backends = lowered.backends;
  const std::string& flow = lowered.flow;
  if (!flow.empty())
    console.printText(
        fmt::format("// what is decided at run, around the partitions below\n// {}\n",
                    fmt::join(text::split(flow.substr(0, flow.size() - 1), '\n'), "\n// ")));
  Json report = console.report("lower");
  report["model"] = options.path;
  report["partitions"] = Json::array();
  for (size_t i = 0; i < parts.size(); ++i) {
    const program::Program& program = parts[i].program;
    const std::string& backend = backends[parts[i].target];
    const std::string counts = kindCounts(program);
    const std::string file =
        arguments.output.empty() ? "" : partFile(arguments.output, i, parts.size());
    const std::string folder = file.empty() ? "" : resourceFolderOf(file);
    const std::string text = fmt::format(
        "// {}\n// partition {} of {} on {}\n{}", counts, i + 1, parts.size(), backend,
        arguments.graph ? printGraph(parts[i].graph, folder) : printProgram(program, folder));
    if (file.empty()) {
      console.printText(text);
    } else {
      check(writeFile(file, text.data(), text.size()), kWorkFailed);
      console.print("{}  {} instructions on {}: {}\n", console.bold(file), program.instrs.size(),
                    backend, counts);
    }
    Json kinds = Json::object(), hostSteps = Json::object();
    for (const program::Instr& instr : program.instrs)
      for (Json* list : {&kinds, &hostSteps}) {
        if (list == &hostSteps && !capabilities::isHostOp(instr.kind)) continue;
        Json& count = (*list)[std::string(program::kindName(instr.kind))];
        count = count.is_null() ? 1 : count.get<int>() + 1;
      }
    report["partitions"].push_back({{"backend", backend},
                                    {"instructions", program.instrs.size()},
                                    {"counts", std::move(kinds)},
                                    {"host_steps", std::move(hostSteps)},
                                    {"arena_bytes", parts[i].arenaBytes},
                                    {"max_live_bytes", parts[i].maxLiveBytes}});
  }
  console.writeJson(report);
}

} // namespace

void addLower(CLI::App& app, Console& console) {
  auto* command = app.add_subcommand(
      "lower", "Show what a model becomes: the Programs that a backend would run.");
  auto arguments = std::make_shared<Arguments>();
  arguments->model.addTo(command);
  arguments->model.addTilingTo(command);
  command
      ->add_option("--to", arguments->to,
                   "primitives: only the 13 primitives, and what the host alone does (sort)")
      ->type_name("LEVEL");
  command->add_option("-o,--output", arguments->output, "write here, large constants beside it")
      ->type_name("F.cdl");
  command->add_flag("--graph", arguments->graph, "print the lowered graphs, not the Programs");
  command->add_flag("--keep-order", arguments->keepOrder,
                    "leave instructions in the order of the model's nodes");
  addJsonOption(command, console);
  command->footer(kFooter);
  command->callback([arguments, &console] { lower(*arguments, console); });
}

} // namespace candela::tool
