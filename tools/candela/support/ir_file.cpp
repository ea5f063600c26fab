#include "tools/candela/support/ir_file.h"

#include <charconv>
#include <filesystem>
#include <map>

#include "core/compiler/graph/text.h"
#include "core/compiler/import/import.h"
#include "core/compiler/program/text.h"
#include "core/support/file.h"
#include "core/support/text/scan.h"
#include "tools/candela/support/model.h"

namespace candela::tool {
namespace {

int64_t parseInteger(const std::string& option, const std::string& whole, std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    fail(kBadInput, "{} {}: '{}' is no size", option, whole, text);
  return value;
}

/// One line for a message of one, lines below the file's name for more.
Failure inFile(const std::string& path, const Status& status) {
  const bool named = status.message().find(fileName(path)) != std::string::npos;
  return Failure(kBadInput, named ? status.message() : path + ": " + status.message());
}

} // namespace

import::ImportOptions importOptions(const ImportFlags& flags) {
  import::ImportOptions options;
  options.claim = flags.claim;
  for (const std::string& text : flags.dims) {
    const Binding dim = parseBinding("--dim", text);
    options.dims[dim.name] = parseInteger("--dim", text, dim.value);
  }
  for (const std::string& text : flags.shapes) {
    const Binding shape = parseBinding("--shape", text);
    Shape& dims = options.shapes[shape.name];
    if (shape.value != "scalar")
      for (const std::string& size : text::split(shape.value, 'x'))
        dims.push_back(parseInteger("--shape", text, size));
  }
  return options;
}

Result<std::string> readText(const std::string& path) {
  CDL_ASSIGN(const Bytes bytes, mapFile(path));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

graph::Graph readGraph(const std::string& path, const ImportFlags& flags) {
  if (!endsWith(path, ".cdl")) {
    Result<driver::Loaded> loaded = driver::loadAny(path, importOptions(flags));
    if (!loaded) throw inFile(path, loaded.status());
    if (auto* script = std::get_if<import::Script>(&*loaded))
      throw inFile(path, script->refusal(path));
    return std::get<graph::Graph>(std::move(loaded).value());
  }
  Diagnostics diagnostics;
  Result<Ir> ir = parseIr(check(readText(path)), path, diagnostics);
  check(diagnostics.status());
  if (!ir) throw inFile(path, ir.status());
  if (!std::holds_alternative<graph::Graph>(*ir))
    fail(kBadInput, "{}: holds a program; a graph is needed here", path);
  return std::get<graph::Graph>(std::move(ir).value());
}

std::vector<graph::Graph> readGraphs(const std::string& path, const ImportFlags& flags,
                                     std::string& flow) {
  std::vector<graph::Graph> graphs;
  if (endsWith(path, ".cdl")) {
    graphs.push_back(readGraph(path, flags));
    return graphs;
  }
  Result<driver::Loaded> loaded = driver::loadAny(path, importOptions(flags));
  if (!loaded) throw inFile(path, loaded.status());
  if (auto* graph = std::get_if<graph::Graph>(&*loaded)) {
    graphs.push_back(std::move(*graph));
    return graphs;
  }
  auto& script = std::get<import::Script>(*loaded);
  flow = script.flow.text();
  for (import::Script::Unit& unit : script.units)
    if (auto* graph = std::get_if<graph::Graph>(&unit)) graphs.push_back(std::move(*graph));
  return graphs;
}

std::string printGraph(const graph::Graph& graph, const std::string& resourceFolder) {
  graph::PrintOptions options;
  options.resourceDirectory = resourceFolder;
  return check(graph::print(graph, options), kWorkFailed);
}

std::string printProgram(const program::Program& program, const std::string& resourceFolder) {
  program::PrintOptions options;
  options.resourceDirectory = resourceFolder;
  return check(program::print(program, options), kWorkFailed);
}

std::string printIr(const Ir& ir, const std::string& resourceFolder) {
  if (const auto* program = std::get_if<program::Program>(&ir))
    return printProgram(*program, resourceFolder);
  return printGraph(std::get<graph::Graph>(ir), resourceFolder);
}

std::string resourceFolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

std::string kindCounts(const program::Program& program) {
  std::map<uint16_t, size_t> counts;
  for (const program::Instr& instr : program.instrs) ++counts[instr.kind];
  std::string text;
  for (const auto& [kind, count] : counts)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", program::kindName(kind), count);
  return text.empty() ? "no instruction" : text;
}

} // namespace candela::tool
