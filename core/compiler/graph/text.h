#pragma once

#include "core/compiler/graph/graph.h"
#include "core/support/diagnostic.h"

namespace candela::graph {

/// The textual form (.cdl). Grammar in docs/reference/cdl.md.
///
///   graph @conv_bn(%x: f32[1,3,8,8]) -> (%y: f32[1,4,6,6] "output name") {
///     %w = constant random(1) : f32[4,3,3,3]
///     %c = conv %x, %w {pads = [0,0,0,0], strides = [1,1]} loc("Conv_0") : f32[1,4,6,6]
///   }
///
/// Constants of up to 64 elements stand in line: constant [1.0, 2.0] : f32[2]; larger ones are
/// splat(v), iota(start, step), random(seed) or resource("name" sha256). An absent optional operand
/// is `_`.
struct PrintOptions {
  /// Where resources of more than 64 elements are written as <name>.bin; empty: they print as
  /// resource("name" sha256) and the text alone cannot be parsed back.
  std::string resourceDirectory;
  bool locations = true;
};
Result<std::string> print(const Graph& graph, const PrintOptions& options = {});

/// An attribute as it stands in the text.
std::string attrText(const Attr& attr, AttrType type = AttrType::Int);

/// Parses one graph. Errors carry line and column; the result was verified. `file` names it in
/// messages; resources are looked up beside it.
Result<Graph> parse(std::string_view text, const std::string& file, Diagnostics& diagnostics);

/// The attributes of an op as they stand between the braces: "strides = [1,1], group = 2". Failure:
/// bad_model with the column.
Result<Attrs> parseAttrs(std::string_view text, OpKind kind);

} // namespace candela::graph
