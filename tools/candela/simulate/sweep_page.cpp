#include <set>

#include "candela/candela.h"
#include "conformance/report/escape.h"
#include "conformance/report/html_style.h"
#include "core/support/text/shown.h"
#include "tools/candela/simulate/files.h"
#include "tools/candela/simulate/simulation_files.h"
#include "tools/candela/simulate/sweep.h"
#include "tools/candela/support/template.h"

namespace candela::tool {
namespace {

using conformance::report::markupEscaped;

std::vector<std::string> columnsOf(const Sweep& sweep) {
  std::vector<std::string> columns{"id", "model", "batch", "npu"};
  columns.insert(columns.end(), sweep.varied.begin(), sweep.varied.end());
  for (const char* name : {"status", "cycles", "time_ms", "inferences_per_s", "device_ms",
                           "host_ms", "host_steps", "host_macs", "mac_utilization", "dram_bytes",
                           "energy_nj", "macs_per_cycle", "scratchpad_bytes", "why"})
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
  for (const char* name : {"time_ms", "device_ms", "cycles", "inferences_per_s", "mac_utilization",
                           "dram_bytes", "energy_nj", "macs_per_cycle", "scratchpad_bytes"})
    numbers.push_back(name);
  for (const std::string& key : sweep.varied)
    if (key != "dram.type") numbers.push_back(key);
  const Json data = {{"rows", rows},
                     {"models", models},
                     {"numbers", std::move(numbers)},
                     {"varied", sweep.varied}};
  const std::vector<std::string> columns = columnsOf(sweep);
  std::string heads, lines;
  for (const std::string& column : columns)
    if (column != "id") heads += fmt::format("<th>{}</th>", markupEscaped(column));
  for (const Json& row : rows) {
    lines += fmt::format("<tr data-id=\"{}\">", row["id"].get<std::string>());
    for (const std::string& column : columns)
      if (column != "id")
        lines += fmt::format("<td data-k=\"{}\">{}</td>", markupEscaped(column),
                             markupEscaped(cellOf(row, column)));
    lines += "</tr>\n";
  }
  return filledTemplate(
      kSweepTemplate,
      {{"FILE", markupEscaped(sweep.file)},
       {"STYLE", fmt::format("{}{}", conformance::report::kHtmlStyle, kSimulationStyle)},
       {"FIDELITY", markupEscaped(sweep.fidelity)},
       {"DONE", std::to_string(done)},
       {"ALL", std::to_string(rows.size())},
       {"COLUMNS", heads},
       {"ROWS", lines},
       {"VERSION", candela_version()},
       {"DATA", scriptText(data)},
       {"SCRIPT", std::string(kSweepScript)}});
}

} // namespace candela::tool
