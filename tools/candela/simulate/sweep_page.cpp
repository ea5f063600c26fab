#include <set>

#include "candela/candela.h"
#include "conformance/report/escape.h"
#include "conformance/report/html_style.h"
#include "core/support/text/shown.h"
#include "tools/candela/simulate/files.h"
#include "tools/candela/simulate/page_files.h"
#include "tools/candela/simulate/sweep.h"

namespace candela::tool {
namespace {

using conformance::report::markupEscaped;

std::vector<std::string> columnsOf(const Sweep& sweep) {
  std::vector<std::string> columns{"id", "model", "batch", "npu"};
  columns.insert(columns.end(), sweep.varied.begin(), sweep.varied.end());
  for (const char* name :
       {"status", "cycles", "time_ms", "inferences_per_s", "mac_utilization", "dram_bytes",
        "energy_nj", "macs_per_cycle", "scratchpad_bytes", "host_macs", "why"})
    columns.push_back(name);
  return columns;
}

std::string cellOf(const Json& row, const std::string& column) {
  if (!row.contains(column)) return "";
  const Json& cell = row[column];
  if (cell.is_string()) return cell.get<std::string>();
  if (cell.is_number_float()) return fmt::format("{:.6g}", cell.get<double>());
  return cell.dump();
}

} // namespace

std::string sweepCsv(const Sweep& sweep, const Json& rows) {
  std::string out;
  for (const std::string& column : columnsOf(sweep))
    out += (out.empty() ? "" : ",") + text::csvCell(column);
  out += "\n";
  for (const Json& row : rows) {
    std::string line;
    for (const std::string& column : columnsOf(sweep))
      line += (column == "id" ? "" : ",") + text::csvCell(cellOf(row, column));
    out += line + "\n";
  }
  return out;
}

std::string sweepPage(const Sweep& sweep, const Json& rows) {
  std::set<std::string> models;
  size_t done = 0;
  for (const Json& row : rows) {
    models.insert(
        fmt::format("{} batch {}", row["model"].get<std::string>(), row["batch"].get<int64_t>()));
    done += row["status"] == "done";
  }
  Json numbers = Json::array();
  for (const char* name : {"time_ms", "cycles", "inferences_per_s", "mac_utilization", "dram_bytes",
                           "energy_nj", "macs_per_cycle", "scratchpad_bytes"})
    numbers.push_back(name);
  for (const std::string& key : sweep.varied)
    if (key != "dram.type") numbers.push_back(key);
  const Json data = {{"rows", rows},
                     {"models", models},
                     {"numbers", std::move(numbers)},
                     {"varied", sweep.varied}};
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/><meta name=\"viewport\" "
      "content=\"width=device-width\"/>"
      "<title>{0}</title>\n<style>{1}{2}</style></head>\n<body><main>\n<div class=\"top\"><div><p "
      "class=\"eyebrow\">sweep, fidelity {3}</p>"
      "<h1>{0} <small>{4} of {5} simulated</small></h1></div></div>\n<section><h2>Pareto front "
      "<small>what no other one beats in both</small></h2>"
      "<div class=\"tools\"><label>model <select id=\"model\"></select></label><label>to the right "
      "<select id=\"x\"></select></label>"
      "<label>upwards <select id=\"y\"></select></label></div><div "
      "id=\"plot\"></div></section>\n<section><h2>Rows <small>the front of the plot in "
      "bold</small></h2><div class=\"sheet\"><table><thead><tr>",
      markupEscaped(sweep.file), conformance::report::kHtmlStyle, kSimulationStyle,
      markupEscaped(sweep.fidelity), done, rows.size());
  const std::vector<std::string> columns = columnsOf(sweep);
  for (const std::string& column : columns)
    if (column != "id") out += fmt::format("<th>{}</th>", markupEscaped(column));
  out += "</tr></thead><tbody>\n";
  for (const Json& row : rows) {
    out += fmt::format("<tr data-id=\"{}\">", row["id"].get<std::string>());
    for (const std::string& column : columns)
      if (column != "id")
        out += fmt::format("<td data-k=\"{}\">{}</td>", markupEscaped(column),
                           markupEscaped(cellOf(row, column)));
    out += "</tr>\n";
  }
  return out + fmt::format("</tbody></table></div></section>\n<footer>candela "
                           "{}</footer>\n</main>\n<script type=\"application/json\" "
                           "id=\"rows\">{}</script>\n<script>{}</script>\n</body></html>\n",
                           candela_version(), scriptText(data), kSweepScript);
}

} // namespace candela::tool
