// candela export: a graph in the format of another tool.
#include "core/compiler/export/formats.h"
#include "core/compiler/graph/passes/passes.h"
#include "core/compiler/import/formats.h"
#include "core/support/file.h"
#include "tools/candela/inspect/inspect.h"
#include "tools/candela/support/command.h"

namespace candela::tool {
namespace {

constexpr const char* kFooter = R"(Examples:
  candela export model.tflite -o model.onnx
  candela export model.onnx --dim N=1 --optimized -o optimized.onnx
  candela export conv.cdl -o conv.tosa.mlir
  candela export --list

The name's end says the format. The graph is the one that import makes; with --optimized the one
that the passes of `candela opt --passes optimize` leave. Node by node it is said in the operators
of the format, or as a formula of them. What a format cannot say is listed, node by node; then
nothing is written and the exit status is 1.)";

constexpr std::string_view kDot = ".dot";

struct Arguments {
  std::string path, output;
  ImportFlags import;
  bool isOptimized = false, isList = false;
};

/// A table in Markdown, which the reference page holds.
std::string listText() {
  std::string text = "| op |", line = "\n| --- |";
  for (const exporter::Format& format : exporter::formats()) {
    if (!format.form) continue;
    text += fmt::format(" {} |", format.name);
    line += " --- |";
  }
  text += line + "\n";
  for (const graph::OpInfo& info : graph::allOps()) {
    text += fmt::format("| `{}` |", info.name);
    for (const exporter::Format& format : exporter::formats())
      if (format.form) text += fmt::format(" {} |", format.form(info.kind));
    text += "\n";
  }
  return text;
}

std::string extensions() {
  std::string text;
  for (const exporter::Format& format : exporter::formats())
    text += fmt::format("{}, ", format.extension);
  return text + std::string(kDot);
}

void writeDot(const graph::Graph& graph, const Arguments& arguments) {
  Page page{"graph", fileName(arguments.path), {}, {}, {}};
  drawGraph(page.drawing, graph);
  const std::string text = drawingDot(page);
  check(writeFile(arguments.output, text.data(), text.size()), kWorkFailed);
}

void exportModel(const Arguments& arguments, Console& console) {
  if (arguments.isList) return console.printText(listText());
  if (arguments.path.empty()) fail(kBadInput, "a model is needed");
  if (arguments.output.empty()) fail(kBadInput, "-o: a file is needed");
  const exporter::Format* format = exporter::formatOf(arguments.output);
  const bool isDot = arguments.output.ends_with(kDot);
  if (!format && !isDot)
    fail(kBadInput, "-o {}: no format has that ending; there are {}", arguments.output,
         extensions());
  refuseBundle(arguments.path);
  graph::Graph graph = readGraph(arguments.path, arguments.import);
  Json report = console.report("export");
  report["model"] = arguments.path;
  report["format"] = isDot ? "Graphviz" : format->name;
  report["output"] = arguments.output;
  report["optimized"] = arguments.isOptimized;
  report["nodes_before"] = graph.nodeCount();
  if (arguments.isOptimized)
    check(graph::passes::optimize(graph, {}).context(arguments.path), kWorkFailed);
  report["nodes"] = graph.nodeCount();
  if (isDot)
    writeDot(graph, arguments);
  else
    check(format->write(graph, arguments.output).context(arguments.path), kWorkFailed);
  console.writeJson(report);
}

} // namespace

void addExport(CLI::App& app, Console& console) {
  auto* command = app.add_subcommand("export", "Write a model in the format of another tool.");
  auto arguments = std::make_shared<Arguments>();
  command
      ->add_option("MODEL", arguments->path, "a .cdl graph or a model: " + import::extensionsText())
      ->type_name("FILE");
  command->add_option("-o,--output", arguments->output, "the file to write: " + extensions())
      ->type_name("FILE");
  command->add_flag("--list", arguments->isList, "list how each op is said in each format");
  command->add_flag("--optimized", arguments->isOptimized,
                    "the graph after the passes of the standard order");
  addRepeated(command, "--dim", arguments->import.dims, "the value of a symbolic dimension: N=1",
              "NAME=VALUE");
  addRepeated(command, "--shape", arguments->import.shapes, "the shape of an input", "NAME=DIMS");
  addJsonOption(command, console);
  command->footer(kFooter);
  command->callback([arguments, &console] { exportModel(*arguments, console); });
}

} // namespace candela::tool
