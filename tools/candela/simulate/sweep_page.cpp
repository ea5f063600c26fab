#include <algorithm>
#include <cmath>
#include <set>

#include "candela/candela.h"
#include "conformance/report/escape.h"
#include "conformance/report/html_style.h"
#include "core/support/text/shown.h"
#include "tools/candela/simulate/files.h"
#include "tools/candela/simulate/margin.h"
#include "tools/candela/simulate/simulation_files.h"
#include "tools/candela/simulate/sweep.h"
#include "tools/candela/support/template.h"

namespace candela::tool {
namespace {

using conformance::report::markupEscaped;

/// `rows`: what no hardware has is a column where one of them has it.
std::vector<std::string> columnsOf(const Sweep& sweep, const Json& rows) {
  std::vector<std::string> columns{"id", "model", "batch", "npu"};
  columns.insert(columns.end(), sweep.varied.begin(), sweep.varied.end());
  for (const char* name : {"status", "cycles", "time_ms", "inferences_per_s", "device_ms",
                           "host_ms", "host_steps", "host_macs", "mac_utilization", "dram_bytes",
                           "energy_nj", "macs_per_cycle", "scratchpad_bytes", "why"})
    columns.push_back(name);
  if (std::ranges::any_of(rows, [](const Json& row) { return row.contains("model_only"); }))
    columns.push_back("model_only");
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
  for (const std::string& column : columnsOf(sweep, rows))
    out += (out.empty() ? "" : ",") + text::csvCell(column);
  out += "\n";
  for (const Json& row : rows) {
    std::string line;
    for (const std::string& column : columnsOf(sweep, rows))
      line += (column == "id" ? "" : ",") + text::csvCell(cellOf(row, column));
    out += line + "\n";
  }
  return out;
}

namespace {

/// How the page shows what sweep.csv has under a name.
struct Shown {
  const char* key;
  const char* head;
  double factor; ///< from the unit of the file to that of the head
};

constexpr Shown kShown[] = {
    {"cycles", "cycles", 1},
    {"time_ms", "time, ms", 1},
    {"inferences_per_s", "runs/s", 1},
    {"device_ms", "device, ms", 1},
    {"host_ms", "host, ms", 1},
    {"host_steps", "host steps", 1},
    {"host_macs", "host MACs", 1},
    {"mac_utilization", "MAC use, %", 100},
    {"dram_bytes", "DRAM, KB", 1e-3},
    {"energy_nj", "energy, \u00b5J", 1e-3},
    {"macs_per_cycle", "MACs/cycle", 1},
    {"scratchpad_bytes", "scratchpad, KB", 1e-3},
};

/// A column of numbers in the page.
struct NumberColumn {
  Shown shown{};
  int decimals = 0;
};

/// As many decimals as the least value needs for three digits, at most four.
int decimalsOf(const Json& rows, const Shown& shown) {
  int decimals = 0;
  for (const Json& row : rows) {
    const double value = std::abs(row.value(shown.key, 0.0)) * shown.factor;
    const bool isWhole = value == std::floor(value);
    if (isWhole) continue;
    const int digits = 2 - static_cast<int>(std::floor(std::log10(value)));
    decimals = std::max(decimals, std::clamp(digits, 1, 4));
  }
  return decimals;
}

/// Those in which a row has something else than 0.
std::vector<NumberColumn> numberColumns(const Json& rows) {
  std::vector<NumberColumn> columns;
  for (const Shown& shown : kShown)
    if (std::ranges::any_of(rows, [&](const Json& row) { return row.value(shown.key, 0.0) != 0; }))
      columns.push_back({shown, decimalsOf(rows, shown)});
  return columns;
}

std::string headsOf(const Sweep& sweep, const std::vector<NumberColumn>& columns) {
  std::string heads = "<th>model</th>";
  for (const std::string& key : sweep.varied)
    heads += fmt::format("<th class=\"n\">{}</th>", markupEscaped(key));
  for (const NumberColumn& column : columns)
    heads += fmt::format("<th class=\"n\">{}</th>", column.shown.head);
  return heads + "<th>status</th>";
}

std::string numberCell(const Json& row, const NumberColumn& column) {
  const char* head = column.shown.head;
  if (!row.contains(column.shown.key))
    return fmt::format("<td class=\"n zero\" data-k=\"{}\"></td>", head);
  const double value = row[column.shown.key].get<double>() * column.shown.factor;
  return fmt::format("<td class=\"n\" data-k=\"{}\" data-v=\"{}\">{}</td>", head, value,
                     groupedText(value, column.decimals));
}

std::string rowText(const Sweep& sweep, const std::vector<NumberColumn>& columns, const Json& row) {
  std::string out =
      fmt::format("<tr data-id=\"{}\"><td data-k=\"model\"><b>{}</b> <small>{}, "
                  "batch {}</small></td>",
                  row["id"].get<std::string>(), markupEscaped(row["model"].get<std::string>()),
                  markupEscaped(row["npu"].get<std::string>()), row["batch"].get<int64_t>());
  for (const std::string& key : sweep.varied) {
    const std::string value = cellOf(row, key);
    const bool isCount =
        !value.empty() && value.find_first_not_of("0123456789") == value.npos && value.size() < 16;
    const std::string shown = isCount ? groupedText(std::stoull(value)) : value;
    out += fmt::format("<td class=\"n\" data-k=\"{}\" data-v=\"{}\">{}</td>", markupEscaped(key),
                       markupEscaped(value), markupEscaped(shown));
  }
  for (const NumberColumn& column : columns) out += numberCell(row, column);
  const std::string why = row.value("why", "");
  const std::string status = row["status"].get<std::string>();
  return out + fmt::format("<td data-k=\"status\">{}{}</td></tr>\n", markupEscaped(status),
                           why.empty() ? "" : markupEscaped(": " + why));
}

/// What the plot has to choose from.
Json plotData(const Sweep& sweep, const Json& rows) {
  std::set<std::string> models;
  for (const Json& row : rows)
    models.insert(
        fmt::format("{} batch {}", row["model"].get<std::string>(), row["batch"].get<int64_t>()));
  Json numbers = Json::array();
  for (const char* name : {"time_ms", "device_ms", "cycles", "inferences_per_s", "mac_utilization",
                           "dram_bytes", "energy_nj", "macs_per_cycle", "scratchpad_bytes"})
    numbers.push_back(name);
  for (const std::string& key : sweep.varied)
    if (key != "dram.type") numbers.push_back(key);
  Json heads = Json::object();
  for (const Shown& shown : kShown) heads[shown.key] = {shown.head, shown.factor};
  return {{"rows", rows},
          {"models", models},
          {"numbers", std::move(numbers)},
          {"heads", std::move(heads)},
          {"varied", sweep.varied}};
}

} // namespace

std::string sweepPage(const Sweep& sweep, const Json& rows) {
  const auto done =
      std::ranges::count_if(rows, [](const Json& row) { return row["status"] == "done"; });
  const std::vector<NumberColumn> columns = numberColumns(rows);
  std::string lines;
  for (const Json& row : rows) lines += rowText(sweep, columns, row);
  const Json margin = marginOf(sweep.isOfDevices ? "estimate" : sweep.fidelity);
  return filledTemplate(
      kSweepTemplate,
      {{"FILE", markupEscaped(sweep.file)},
       {"STYLE", fmt::format("{}{}", conformance::report::kHtmlStyle, kSimulationStyle)},
       {"HOW", sweep.isOfDevices ? "sweep of estimates"
                                 : markupEscaped("sweep, fidelity " + sweep.fidelity)},
       {"MARGIN", markupEscaped(margin["text"].get<std::string>())},
       {"SOURCE", markupEscaped(margin["source"].get<std::string>())},
       {"DONE", std::to_string(done)},
       {"ALL", std::to_string(rows.size())},
       {"COLUMNS", headsOf(sweep, columns)},
       {"ROWS", lines},
       {"VERSION", candela_version()},
       {"DATA", scriptText(plotData(sweep, rows))},
       {"SCRIPT", std::string(kSweepScript)}});
}

} // namespace candela::tool
