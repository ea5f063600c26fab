#include "core/compiler/graph/text.h"
#include "core/support/text/literal.h"

namespace candela::graph {
namespace {

std::string valueText(const Value* value) { return value ? text::nameText('%', value->name) : "_"; }

/// Everything behind the name. `prefix` makes names of resources unique among the bodies of loops.
Result<std::string> graphText(const Graph& graph, const PrintOptions& options,
                              const std::string& prefix, const std::string& indent);

Result<std::string> nodeLine(const Node& node, const PrintOptions& options,
                             const std::string& prefix, const std::string& indent) {
  std::vector<std::string> results, types, operands, attrs, names;
  for (const Value* result : node.results()) {
    results.push_back(valueText(result));
    types.push_back(result->type.text());
  }
  for (const Value* operand : node.operands()) operands.push_back(valueText(operand));
  for (const auto& [name, attr] : node.attrs) {
    const AttrInfo* info = node.info().attr(name);
    attrs.push_back(
        fmt::format("{} = {}", name, attrText(attr, info ? info->type : AttrType::Int)));
  }
  for (const std::string& name : node.provenance) names.push_back(text::quoteText(name));
  std::string line = fmt::format("{}{} = {}", indent, fmt::join(results, ", "), opName(node.kind));
  if (node.payload) {
    CDL_ASSIGN(
        const std::string content,
        text::payloadText(*node.payload, prefix + node.result()->name, options.resourceDirectory));
    line += " " + content;
  }
  if (!operands.empty()) line += fmt::format(" {}", fmt::join(operands, ", "));
  if (!attrs.empty()) line += fmt::format(" {{{}}}", fmt::join(attrs, ", "));
  if (options.locations && !names.empty()) line += fmt::format(" loc({})", fmt::join(names, ", "));
  line += fmt::format(" : {}\n", fmt::join(types, ", "));
  if (!node.body) return line;
  CDL_ASSIGN(const std::string body,
             graphText(*node.body, options, prefix + node.result()->name + ".", indent + "  "));
  return line + indent + "  body" + body;
}

Result<std::string> graphText(const Graph& graph, const PrintOptions& options,
                              const std::string& prefix, const std::string& indent) {
  std::string out = "(";
  for (size_t i = 0; i < graph.inputs().size(); ++i)
    out += fmt::format("{}{}: {}", i ? ", " : "", valueText(graph.inputs()[i]),
                       graph.inputs()[i]->type.text());
  out += ") -> (";
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const Value* value = graph.outputs()[i];
    out += fmt::format("{}{}: {}", i ? ", " : "", valueText(value), value->type.text());
    if (graph.outputNames()[i] != value->name) out += " " + text::quoteText(graph.outputNames()[i]);
  }
  out += ") {\n";
  for (const auto& node : graph.nodes()) {
    CDL_ASSIGN(const std::string line, nodeLine(*node, options, prefix, indent + "  "));
    out += line;
  }
  return out + indent + "}\n";
}

} // namespace

Result<std::string> print(const Graph& graph, const PrintOptions& options) {
  CDL_ASSIGN(const std::string text, graphText(graph, options, "", ""));
  return fmt::format("graph {}{}", text::nameText('@', graph.name), text);
}

} // namespace candela::graph
