#include "core/graph/text.h"
#include "core/import/import.h"
#include "core/pipeline/pipeline.h"
#include "core/program/text.h"
#include "core/support/file.h"

namespace candela::pipeline {
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

Result<Ir> loadModel(const std::string& path, const std::map<std::string, int64_t>& dims,
                     const std::map<std::string, Shape>& shapes) {
  if (!path.ends_with(".cdl")) {
    import::ImportOptions options;
    options.dims = dims;
    options.shapes = shapes;
    CDL_ASSIGN(graph::Graph graph, import::importOnnx(path, options));
    return Ir(std::move(graph));
  }
  if (!dims.empty() || !shapes.empty())
    return badArgument("{}: a .cdl file has its shapes; dims and shapes are for .onnx files", path);
  CDL_ASSIGN(const Bytes file, mapFile(path));
  Diagnostics diagnostics;
  return parseIr({reinterpret_cast<const char*>(file.data()), file.size()}, path, diagnostics);
}

} // namespace candela::pipeline
