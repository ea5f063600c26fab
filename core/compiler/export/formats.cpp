#include "core/compiler/export/formats.h"

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "core/compiler/export/onnx/export_onnx.h"
#include "core/compiler/export/tosa/export_tosa.h"
#include "core/compiler/graph/text.h"
#include "core/compiler/import/onnx_io/write.h"
#include "core/support/file.h"

namespace candela::exporter {
namespace {

Status writeOnnx(const graph::Graph& graph, const std::string& path) {
  CDL_ASSIGN(const import::onnx_io::Model model, onnx::toOnnx(graph));
  return import::onnx_io::writeModel(model, path);
}

Status writeTosa(const graph::Graph& graph, const std::string& path) {
  CDL_ASSIGN(const std::string text, tosa::toTosa(graph));
  return writeFile(path, text.data(), text.size());
}

/// Large constants stand in files beside the text.
Status writeText(const graph::Graph& graph, const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  graph::PrintOptions options;
  options.resourceDirectory = folder.empty() ? "." : folder;
  CDL_ASSIGN(const std::string text, graph::print(graph, options));
  return writeFile(path, text.data(), text.size());
}

constexpr Format kFormats[] = {
    {"ONNX", ".onnx", "opset 26", onnx::formOf, writeOnnx},
    {"TOSA", ".tosa.mlir", "MLIR 19", tosa::formOf, writeTosa},
    {"the textual form", ".cdl", "", nullptr, writeText},
};

} // namespace

std::span<const Format> formats() { return kFormats; }

const Format* formatOf(std::string_view path) {
  const auto* found = std::ranges::find_if(
      kFormats, [&](const Format& format) { return path.ends_with(format.extension); });
  return found == std::end(kFormats) ? nullptr : found;
}

} // namespace candela::exporter
