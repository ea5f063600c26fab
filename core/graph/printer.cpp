#include "core/graph/checks.h"
#include "core/graph/text.h"
#include "core/support/text/literal.h"

namespace candela::graph {
namespace {

std::string valueText(const Value* value) { return value ? text::nameText('%', value->name) : "_"; }

Result<std::string> nodeLine(const Node& node, const PrintOptions& options) {
  std::string line = "  ", types;
  for (const Value* result : node.results()) {
    if (result->resultIndex) {
      line += ", ";
      types += ", ";
    }
    line += valueText(result);
    types += result->type.text();
  }
  line += fmt::format(" = {}", opName(node.kind));
  if (node.payload) {
    CDL_ASSIGN(const std::string content,
               text::payloadText(*node.payload, node.result()->name, options.resourceDirectory));
    line += " " + content;
  }
  for (size_t i = 0; i < node.operands().size(); ++i) line += (i ? ", " : " ") + valueText(node.operands()[i]);
  if (!node.attrs.empty()) {
    line += " {";
    const char* separator = "";
    for (const auto& [name, attr] : node.attrs) {
      const AttrInfo* info = node.info().attr(name);
      line += fmt::format("{}{} = {}", separator, name, attrText(attr, info ? info->type : AttrType::Int));
      separator = ", ";
    }
    line += "}";
  }
  if (options.locations && !node.provenance.empty()) {
    line += " loc(";
    for (size_t i = 0; i < node.provenance.size(); ++i) line += (i ? ", " : "") + text::quoteText(node.provenance[i]);
    line += ")";
  }
  return line + " : " + types + "\n";
}

} // namespace

Result<std::string> print(const Graph& graph, const PrintOptions& options) {
  std::string out = fmt::format("graph {}(", text::nameText('@', graph.name));
  for (size_t i = 0; i < graph.inputs().size(); ++i)
    out += fmt::format("{}{}: {}", i ? ", " : "", valueText(graph.inputs()[i]), graph.inputs()[i]->type.text());
  out += ") -> (";
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const Value* value = graph.outputs()[i];
    out += fmt::format("{}{}: {}", i ? ", " : "", valueText(value), value->type.text());
    if (graph.outputNames()[i] != value->name) out += " " + text::quoteText(graph.outputNames()[i]);
  }
  out += ") {\n";
  for (const auto& node : graph.nodes()) {
    CDL_ASSIGN(const std::string line, nodeLine(*node, options));
    out += line;
  }
  return out + "}\n";
}

} // namespace candela::graph
