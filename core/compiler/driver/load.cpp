#include "core/compiler/driver/kept_models.h"
#include "core/compiler/driver/pipeline.h"
#include "core/compiler/graph/text.h"
#include "core/compiler/import/formats.h"
#include "core/compiler/import/import.h"
#include "core/compiler/program/text.h"
#include "core/support/file.h"

namespace candela::driver {
Result<Ir> parseIr(std::string_view text, const std::string& file, Diagnostics& diagnostics) {
  text::TokenStream in(text, file, diagnostics);
  if (in.at("graph")) {
    CDL_ASSIGN(graph::Graph graph, graph::parse(text, file, diagnostics));
    return Ir(std::move(graph));
  }
  if (in.at("program")) {
    CDL_ASSIGN(program::Program program, program::parse(text, file, diagnostics));
    return Ir(std::move(program));
  }
  const text::Token first = in.peek();
  in.report(first, fmt::format("expected 'graph' or 'program' but found {}", first.shown()));
  return diagnostics.status();
}

static Result<Loaded> importParsed(std::shared_ptr<const import::onnx_io::Model> model,
                                   const import::ImportOptions& options) {
  CDL_ASSIGN(import::Script script, import::importScript(std::move(model), options));
  if (graph::Graph* graph = script.graph()) return Loaded(std::move(*graph));
  return Loaded(std::move(script));
}

Result<Loaded> loadAny(const std::string& path, const import::ImportOptions& options) {
  if (!path.ends_with(".cdl")) {
    CDL_ASSIGN(auto model, KeptModels::parsed(path));
    return importParsed(std::move(model), options);
  }
  CDL_ASSIGN(const Bytes content, mapFile(path));
  return loadContent(content, path, options);
}

Result<Loaded> loadContent(const Bytes& content, const std::string& path,
                           const import::ImportOptions& options) {
  if (!path.ends_with(".cdl")) {
    CDL_ASSIGN(import::onnx_io::Model model, import::parseModel(content, path));
    return importParsed(std::make_shared<const import::onnx_io::Model>(std::move(model)), options);
  }
  if (!options.dims.empty() || !options.shapes.empty())
    return badArgument("{}: a .cdl file has its shapes; dims and shapes are for {} files", path,
                       import::extensionsText());
  Diagnostics diagnostics;
  CDL_ASSIGN(Ir ir, parseIr({reinterpret_cast<const char*>(content.data()), content.size()}, path,
                            diagnostics));
  return std::visit([](auto&& parsed) { return Loaded(std::move(parsed)); }, std::move(ir));
}

} // namespace candela::driver
