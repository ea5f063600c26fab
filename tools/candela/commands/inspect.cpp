// candela inspect: what is in a file.
#include "tools/candela/inspect/inspect.h"

#include <cstring>

#include "core/runtime/bundle/bundle.h"
#include "core/support/file.h"
#include "tools/candela/support/command.h"
#include "tools/candela/support/model.h"

namespace candela::tool {
namespace {

constexpr const char* kFooter = R"(Examples:
  candela inspect resnet50.onnx
  candela inspect detector.cdb --html detector.html
  candela inspect resnet50.onnx --backend cpu --dim N=1 --html resnet50.html
  candela inspect ./libacme.so --load --all
  candela inspect detector.onnx --backend ./libacme.so --dim N=1
  candela inspect model.cdl --dot | dot -Tsvg -o model.svg

FILE is a model, a .cdl graph or program, a bundle, an image, a plugin, a JSON report of
this tool or a .npy tensor; its content decides.
Of a plugin its symbols are read; with --load it is loaded too, so that its code runs.
--html shows the memory map over time: of a bundle, an image or a Program as it is planned, of a
model as it would be compiled for --backend (default soft), with a drawing of which nodes are
where.)";

struct Arguments {
  std::string path, html, backends;
  ImportFlags import;
  ModelOptions placing; ///< --partition and --pin
  bool dot = false, all = false, load = false;
};

Page inspectFile(const Arguments& arguments) {
  const std::string& path = arguments.path;
  const Bytes file = check(mapFile(path));
  const auto begins = [&](std::string_view magic) {
    return file.size() >= magic.size() && std::memcmp(file.data(), magic.data(), magic.size()) == 0;
  };
  if (begins("\x7f"
             "ELF"))
    return inspectPlugin(path, arguments.load);
  if (begins("CDLP")) return inspectImage(path);
  if (begins("\x93NUMPY")) return inspectTensor(path);
  if (begins("{")) return inspectReport(path);
  if (runtime::bundle::isBundle(path)) return inspectBundle(path);
  if (endsWith(path, ".cdl")) return inspectText(path);
  return inspectModel(path, arguments.backends, arguments.import);
}

/// As the model would be compiled.
ModelOptions compilingOptions(const Arguments& arguments) {
  ModelOptions options = arguments.placing;
  options.path = arguments.path;
  options.dims = arguments.import.dims;
  options.shapes = arguments.import.shapes;
  if (!arguments.backends.empty()) options.backends = arguments.backends;
  return options;
}

void inspect(const Arguments& arguments, Console& console) {
  Page page = inspectFile(arguments);
  const bool isModel =
      page.kind.ends_with(" model") || page.kind == "graph" || page.kind == "program";
  if (isModel && !arguments.html.empty()) addModelMemory(page, compilingOptions(arguments));
  if (arguments.dot) {
    if (page.drawing.nodes.empty())
      fail(kBadInput, "{}: --dot: there is nothing to draw in this {}", arguments.path, page.kind);
    console.printText(drawingDot(page));
  } else {
    console.printText(pageText(page, console, arguments.all ? SIZE_MAX : 40));
  }
  if (!arguments.html.empty()) {
    const std::string html = pageHtml(page);
    check(writeFile(arguments.html, html.data(), html.size()), kWorkFailed);
  }
  Json report = console.report("inspect");
  pageJson(page, report);
  console.writeJson(report);
}

} // namespace

void addInspect(CLI::App& app, Console& console) {
  auto* command = app.add_subcommand(
      "inspect", "Show what is in a model, bundle, image, plugin, report or tensor.");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("FILE", arguments->path, "the file")->required()->type_name("FILE");
  command->add_flag("--all", arguments->all, "all rows of long tables");
  command->add_flag("--load", arguments->load,
                    "load a plugin, which runs its code: options, devices, rows");
  command->add_flag("--dot", arguments->dot, "print a graph for Graphviz instead");
  command->add_option("--html", arguments->html, "write a self-contained page")->type_name("FILE");
  command
      ->add_option(
          "--backend", arguments->backends,
          "backends that may claim operators of other domains, and that --html compiles for")
      ->type_name("B[,B2...]");
  arguments->placing.addPlacingTo(command);
  addRepeated(command, "--dim", arguments->import.dims,
              "the value of a symbolic dimension, for both: N=1", "NAME=VALUE");
  addRepeated(command, "--shape", arguments->import.shapes, "the shape of an input, for both",
              "NAME=DIMS");
  addJsonOption(command, console);
  command->footer(kFooter);
  command->callback([arguments, &console] { inspect(*arguments, console); });
}

} // namespace candela::tool
