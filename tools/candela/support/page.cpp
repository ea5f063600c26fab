#include "tools/candela/support/page.h"

#include <algorithm>

#include "candela/candela.h"
#include "conformance/report/escape.h"
#include "conformance/report/html_style.h"
#include "tools/candela/support/page_files.h"
#include "tools/candela/support/template.h"

namespace candela::tool {
namespace {

using conformance::report::markupEscaped;

std::string cellText(const Json& cell) {
  if (cell.is_string()) return cell.get<std::string>();
  if (cell.is_null()) return "";
  if (!cell.is_array()) return cell.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string text;
  for (const Json& item : cell) text += (text.empty() ? "" : ", ") + cellText(item);
  return text;
}

std::string dotQuoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + "\"";
}

bool isNumeric(const Json& cell) { return cell.is_number() || cell.is_null(); }

std::string tableHtml(const PageTable& table) {
  std::string out = fmt::format("<section><h2>{} <small>{}</small></h2>\n<table><thead><tr>",
                                markupEscaped(table.name), table.rows.size());
  std::vector<const char*> classes; // numbers stand to the right
  for (size_t c = 0; c < table.columns.size(); ++c) {
    const auto isNumber = [&](const std::vector<Json>& row) { return isNumeric(row[c]); };
    classes.push_back(std::ranges::all_of(table.rows, isNumber) ? " class=\"n\"" : "");
    out += fmt::format("<th{}>{}</th>", classes.back(), markupEscaped(table.columns[c]));
  }
  out += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    out += "<tr>";
    for (size_t c = 0; c < row.size(); ++c)
      out += fmt::format("<td{} data-k=\"{}\">{}</td>", classes[c], markupEscaped(table.columns[c]),
                         markupEscaped(cellText(row[c])));
    out += "</tr>\n";
  }
  return out + "</tbody></table></section>\n";
}

} // namespace

std::string pageText(const Page& page, const Console& console, size_t maxRows) {
  std::string out = fmt::format("{}  {}\n", console.bold(text::shownLine(page.file)), page.kind);
  size_t width = 0;
  for (const auto& [name, value] : page.facts) width = std::max(width, name.size());
  for (const auto& [name, value] : page.facts)
    out += fmt::format("  {:<{}}  {}\n", name, width, text::shownLine(cellText(value)));
  for (const PageTable& table : page.tables) {
    if (table.rows.empty()) continue;
    out += fmt::format("\n{} ({})\n", console.bold(text::shownLine(table.name)), table.rows.size());
    Table text(table.columns);
    for (size_t i = 0; i < std::min(maxRows, table.rows.size()); ++i) {
      std::vector<std::string> row;
      for (const Json& cell : table.rows[i]) row.push_back(cellText(cell));
      text.add(std::move(row));
    }
    out += text.text();
    if (table.rows.size() > maxRows)
      out += fmt::format("  and {} more (--all)\n", table.rows.size() - maxRows);
  }
  return out;
}

void pageJson(const Page& page, Json& to) {
  to["file"] = page.file;
  to["kind"] = page.kind;
  for (const auto& [name, value] : page.facts) {
    std::string key = name;
    std::replace(key.begin(), key.end(), ' ', '_');
    to[key] = value;
  }
  for (const PageTable& table : page.tables) {
    Json list = Json::array();
    for (const auto& row : table.rows) {
      Json object = Json::object();
      for (size_t i = 0; i < row.size(); ++i) object[table.columns[i]] = row[i];
      list.push_back(std::move(object));
    }
    std::string key = table.name;
    std::replace(key.begin(), key.end(), ' ', '_');
    to[key] = std::move(list);
  }
}

std::string pageHtml(const Page& page) {
  std::string figures, facts, tables;
  for (const Figure& figure : page.figures)
    figures += fmt::format(
        "<section><h2>{} <small>{}</small></h2>\n<div class=\"figure\">{}</div></section>\n",
        markupEscaped(figure.title), markupEscaped(figure.caption), figure.markup);
  for (const auto& [name, value] : page.facts)
    facts += fmt::format("<dt>{}</dt><dd>{}</dd>\n", markupEscaped(name),
                         markupEscaped(cellText(value)));
  for (const PageTable& table : page.tables)
    if (!table.rows.empty()) tables += tableHtml(table);
  return filledTemplate(kPageTemplate,
                        {{"FILE", markupEscaped(page.file)},
                         {"KIND", markupEscaped(page.kind)},
                         {"STYLE", fmt::format("{}{}{}{}", conformance::report::kHtmlStyle,
                                               kMemoryFigureStyle, kPlacementStyle, kPageStyle)},
                         {"FIGURES", figures},
                         {"FACTS", facts},
                         {"TABLES", tables},
                         {"VERSION", candela_version()},
                         {"SCRIPT", std::string(kPageScript)}});
}

std::string drawingDot(const Page& page) {
  std::string out =
      "digraph " + dotQuoted(page.file) + " {\n  node [shape=box, fontname=\"sans-serif\"];\n";
  for (const Drawing::Node& node : page.drawing.nodes)
    out +=
        fmt::format("  {} [label={}];\n", dotQuoted(node.id),
                    dotQuoted(node.detail.empty() ? node.label : node.label + "\n" + node.detail));
  for (const Drawing::Edge& edge : page.drawing.edges)
    out += fmt::format("  {} -> {} [label={}];\n", dotQuoted(edge.from), dotQuoted(edge.to),
                       dotQuoted(edge.label));
  return out + "}\n";
}

} // namespace candela::tool
