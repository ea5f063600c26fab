#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/compiler/graph/graph.h"

/// The formats that a Graph is written in. Each has a room that turns ops into what the format has
/// for them; what it cannot say is refused, all of it at once, and nothing is written then.
namespace candela::exporter {

struct Format {
  std::string_view name;      ///< "ONNX"
  std::string_view extension; ///< ".onnx"
  std::string_view version;   ///< of what is written: "opset 26"
  /// How an op is said there: for the list of `candela export --list`; null where all ops are.
  std::string_view (*form)(graph::OpKind kind);
  /// Failures: unsupported, with a line for each node that has no form; io. A file that was there
  /// survives them.
  Status (*write)(const graph::Graph& graph, const std::string& path);
};

std::span<const Format> formats();
/// By the end of a file's name; null where it is none of them.
const Format* formatOf(std::string_view path);

} // namespace candela::exporter
