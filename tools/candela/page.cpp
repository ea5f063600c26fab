#include "tools/candela/page.h"

#include <algorithm>

#include "candela/candela.h"

namespace candela::tool {
namespace {

std::string cellText(const Json& cell) {
  if (cell.is_string()) return cell.get<std::string>();
  if (cell.is_null()) return "";
  if (!cell.is_array()) return cell.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string text;
  for (const Json& item : cell) text += (text.empty() ? "" : ", ") + cellText(item);
  return text;
}

std::string htmlEscaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
    case '<': out += "&lt;"; break;
    case '>': out += "&gt;"; break;
    case '&': out += "&amp;"; break;
    case '"': out += "&quot;"; break;
    default: out += c;
    }
  }
  return out;
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

constexpr const char* kStyle =
    R"(body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:72em;padding:0 1em;color:#1d2329}
h1{font-size:1.4em}h2{font-size:1.1em;margin-top:2em}table{border-collapse:collapse;width:100%}
th,td{text-align:left;padding:.25em .8em .25em 0;border-bottom:1px solid #dde2e8;vertical-align:top;overflow-wrap:anywhere}
th{color:#5b6672;font-weight:600}td{font-variant-numeric:tabular-nums}footer{margin-top:3em;color:#5b6672})";

} // namespace

std::string pageText(const Page& page, const Console& console, size_t maxRows) {
  std::string out = fmt::format("{}  {}\n", console.bold(page.file), page.kind);
  size_t width = 0;
  for (const auto& [name, value] : page.facts) width = std::max(width, name.size());
  for (const auto& [name, value] : page.facts) out += fmt::format("  {:<{}}  {}\n", name, width, cellText(value));
  for (const PageTable& table : page.tables) {
    if (table.rows.empty()) continue;
    out += fmt::format("\n{} ({})\n", console.bold(table.name), table.rows.size());
    Table text(table.columns);
    for (size_t i = 0; i < std::min(maxRows, table.rows.size()); ++i) {
      std::vector<std::string> row;
      for (const Json& cell : table.rows[i]) row.push_back(cellText(cell));
      text.add(std::move(row));
    }
    out += text.text();
    if (table.rows.size() > maxRows) out += fmt::format("  and {} more (--all)\n", table.rows.size() - maxRows);
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
  std::string out =
      fmt::format("<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{0}</title>\n<style>{1}</style>\n"
                  "<h1>{0}</h1>\n<p>{2}</p>\n<table>\n",
                  htmlEscaped(page.file), kStyle, htmlEscaped(page.kind));
  for (const auto& [name, value] : page.facts)
    out += fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", htmlEscaped(name), htmlEscaped(cellText(value)));
  out += "</table>\n";
  for (const PageTable& table : page.tables) {
    if (table.rows.empty()) continue;
    out += fmt::format("<h2>{} ({})</h2>\n<table>\n<tr>", htmlEscaped(table.name), table.rows.size());
    for (const std::string& column : table.columns) out += fmt::format("<th>{}</th>", htmlEscaped(column));
    out += "</tr>\n";
    for (const auto& row : table.rows) {
      out += "<tr>";
      for (const Json& cell : row) out += fmt::format("<td>{}</td>", htmlEscaped(cellText(cell)));
      out += "</tr>\n";
    }
    out += "</table>\n";
  }
  return out + fmt::format("<footer>candela {}</footer>\n</html>\n", candela_version());
}

std::string drawingDot(const Page& page) {
  std::string out = "digraph " + dotQuoted(page.file) + " {\n  node [shape=box, fontname=\"sans-serif\"];\n";
  for (const Drawing::Node& node : page.drawing.nodes)
    out += fmt::format("  {} [label={}];\n", dotQuoted(node.id),
                       dotQuoted(node.detail.empty() ? node.label : node.label + "\n" + node.detail));
  for (const Drawing::Edge& edge : page.drawing.edges)
    out += fmt::format("  {} -> {} [label={}];\n", dotQuoted(edge.from), dotQuoted(edge.to), dotQuoted(edge.label));
  return out + "}\n";
}

} // namespace candela::tool
