#include "core/graph/text.h"
#include "core/import/import.h"
#include "core/pipeline/pipeline.h"
#include "core/program/text.h"
#include "core/support/file.h"

namespace candela::pipeline {
namespace {

/// The first word after blanks and comments.
std::string_view firstWord(std::string_view text) {
  for (;;) {
    const size_t start = text.find_first_not_of(" \t\r\n");
    if (start == std::string_view::npos) return {};
    text.remove_prefix(start);
    if (!text.starts_with("//")) break;
    const size_t line = text.find('\n');
    if (line == std::string_view::npos) return {};
    text.remove_prefix(line);
  }
  return text.substr(0, text.find_first_of(" \t\r\n@{("));
}

} // namespace

Result<LoadedModel> loadModel(const std::string& path, const std::map<std::string, int64_t>& dims,
                              const std::map<std::string, Shape>& shapes) {
  LoadedModel model;
  if (!path.ends_with(".cdl")) {
    import::ImportOptions options;
    options.dims = dims;
    options.shapes = shapes;
    CDL_ASSIGN(model.graph, import::importOnnx(path, options));
    return model;
  }
  if (!dims.empty() || !shapes.empty())
    return badArgument("{}: a .cdl file has its shapes; dims and shapes are for .onnx files", path);
  CDL_ASSIGN(Bytes file, mapFile(path));
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  const std::string_view word = firstWord(text);
  Diagnostics diagnostics;
  if (word == "graph") {
    auto graph = graph::parse(text, path, diagnostics);
    if (!graph) return graph.status();
    model.graph = std::move(graph).value();
  } else if (word == "program") {
    auto program = program::parse(text, path, diagnostics);
    if (!program) return program.status();
    model.program = std::move(program).value();
  } else {
    return badModel("{}: expected 'graph' or 'program', found '{}'", path, word);
  }
  return model;
}

} // namespace candela::pipeline
