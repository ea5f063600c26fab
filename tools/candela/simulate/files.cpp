#include "tools/candela/simulate/files.h"

#include <algorithm>
#include <cstdlib>

#include "core/support/file.h"
#include "core/support/json.h"
#include "core/support/text/shown.h"

namespace candela::tool {
namespace {

/// What cycles go to: as npu_sim says it, and as estimates do.
std::vector<std::string> causesOf(const Json& report) {
  if (report.value("schema", "") == "candela.estimate/1")
    return {"products", "unused", "vector", "load", "store", "memory"};
  return {"products", "unused", "fill", "requant", "vector", "scatter",
          "load",     "store",  "dram", "bank",    "control"};
}

/// Counts of layers that only some devices have.
std::vector<const char*> moreCounts(const Json& report) {
  std::vector<const char*> names;
  if (report.contains("memories")) names = {"second_loaded", "second_stored"};
  if (report.contains("compression"))
    names.insert(names.end(), {"expanded_bytes", "compressed_bytes"});
  return names;
}

/// "0 2 3": the cores that compute a layer.
std::string coreNumbers(const Json& layer) {
  std::string text;
  for (const Json& core : layer.value("cores", Json::array()))
    text += fmt::format("{}{}", text.empty() ? "" : " ", core.get<uint64_t>());
  return text;
}

uint64_t countIn(const Json& from, const char* key) { return from.value(key, uint64_t{0}); }

} // namespace

std::string scriptText(const Json& data) {
  // A page ends its script at "</script", and ignores that behind "<!--<script".
  std::string text;
  for (const char c : text::shownJson(data.dump(-1, ' ', false, Json::error_handler_t::replace)))
    switch (c) {
    case '<': text += "\\u003c"; break;
    case '>': text += "\\u003e"; break;
    case '&': text += "\\u0026"; break;
    default: text += c;
    }
  return text;
}

std::string modelOnlyOf(const Json& report) {
  std::string text;
  for (const Json& setting : report.value("model_only", Json::array()))
    text += fmt::format("{}{} = {}", text.empty() ? "" : "; ", setting["key"].get<std::string>(),
                        setting["value"].get<std::string>());
  return text;
}

std::string layersCsv(const Json& report) {
  const char* const counts[] = {"macs",
                                "weights",
                                "tables",
                                "loaded",
                                "stored",
                                "program_bytes",
                                "passes",
                                "requant_values",
                                "vector_values",
                                "scratchpad_read",
                                "scratchpad_written",
                                "scratchpad_peak"};
  std::string out =
      "layer,program,start,done,cycles,mac_utilization,bound,least_cycles,least_by,of_least";
  const std::vector<std::string> wanted = causesOf(report);
  for (const std::string& cause : wanted) out += fmt::format(",cause_{}", cause);
  for (const auto& [engine, busy] : report["engines"].items())
    out += "," + text::csvCell("busy_" + engine);
  for (const char* name : counts) out += fmt::format(",{}", name);
  const std::vector<const char*> more = moreCounts(report);
  for (const char* name : more) out += fmt::format(",{}", name);
  const bool isAssumed = report.contains("assumed_int8");
  const bool hasEnergy = report.contains("energy");
  const std::string alone = modelOnlyOf(report);
  const bool hasCores = report.contains("cores");
  out += fmt::format("{}{}{}{}\n", hasCores ? ",cores,split" : "", hasEnergy ? ",energy_nj" : "",
                     isAssumed ? ",scales" : "", alone.empty() ? "" : ",model_only");
  for (const Json& layer : report["layers"]) {
    const auto of = [&](const char* key) { return layer.value(key, uint64_t{0}); };
    out +=
        fmt::format("{},{},{},{},{},{:.4f},{}", text::csvCell(layer.value("name", "")),
                    of("program"), of("start"), of("done"), of("cycles"),
                    layer.value("mac_utilization", 0.0), text::csvCell(layer.value("bound", "")));
    out += layer.contains("least_cycles") ? fmt::format(",{},{},", of("least_cycles"),
                                                        text::csvCell(layer.value("least_by", "")))
                                          : ",,,";
    if (layer.contains("of_least")) out += fmt::format("{:.4f}", layer["of_least"].get<double>());
    const Json none = Json::object();
    const Json& causes = layer.contains("causes") ? layer["causes"] : none;
    const Json& busy = layer.contains("busy") ? layer["busy"] : none;
    for (const std::string& cause : wanted)
      out += fmt::format(",{}", causes.value(cause, uint64_t{0}));
    for (const auto& [engine, all] : report["engines"].items())
      out += fmt::format(",{}", busy.value(engine, uint64_t{0}));
    for (const char* name : counts) out += fmt::format(",{}", of(name));
    for (const char* name : more) out += fmt::format(",{}", of(name));
    if (hasCores) out += fmt::format(",{},{}", coreNumbers(layer), layer.value("split", ""));
    if (hasEnergy) out += fmt::format(",{:.2g}", layer.value("energy_nj", 0.0));
    if (isAssumed) out += ",assumed";
    out += alone.empty() ? "\n" : "," + text::csvCell(alone) + "\n";
  }
  return out;
}

Json comparedLayers(const Json& report, const Json& other) {
  std::map<std::string, uint64_t> before;
  for (const Json& layer : other["layers"])
    before[layer.value("name", "")] += layer.value("cycles", uint64_t{0});
  Json rows = Json::array();
  std::map<std::string, size_t> rowOf; // a node of several programs is one row
  for (const Json& layer : report["layers"]) {
    const std::string node = layer.value("name", "");
    const auto [row, isNew] = rowOf.try_emplace(node, rows.size());
    if (isNew) rows.push_back({{"name", node}, {"before", uint64_t{0}}, {"after", uint64_t{0}}});
    Json& after = rows[row->second]["after"];
    after = after.get<uint64_t>() + layer.value("cycles", uint64_t{0});
    if (const auto known = before.find(node); known != before.end()) {
      rows[row->second]["before"] = known->second;
      before.erase(known);
    }
  }
  for (const auto& [node, cycles] : before)
    rows.push_back({{"name", node}, {"before", cycles}, {"after", uint64_t{0}}});
  return {{"npu_before", other.value("npu", "")},
          {"model_before", other.value("model", "")},
          {"cycles_before", other.value("cycles", uint64_t{0})},
          {"cycles_after", report.value("cycles", uint64_t{0})},
          {"layers", std::move(rows)}};
}

void printCompared(const Json& compared, const std::string& model, size_t rows, Console& console) {
  const auto before = static_cast<double>(countIn(compared, "cycles_before")),
             after = static_cast<double>(countIn(compared, "cycles_after"));
  if (compared["model_before"] != model)
    console.note("{} is compared with another model, {}", model,
                 compared["model_before"].get<std::string>());
  console.print("  compared with {} on {}: {} to {} cycles, {:.2f}x as fast\n",
                compared["model_before"].get<std::string>(),
                compared["npu_before"].get<std::string>(), countIn(compared, "cycles_before"),
                countIn(compared, "cycles_after"), after > 0 ? before / after : 0.0);
  std::vector<std::pair<int64_t, const Json*>> changed;
  for (const Json& row : compared["layers"])
    if (const auto change = static_cast<int64_t>(countIn(row, "after")) -
                            static_cast<int64_t>(countIn(row, "before"));
        change != 0)
      changed.emplace_back(change, &row);
  std::ranges::stable_sort(changed, std::greater<>(),
                           [](const auto& each) { return std::abs(each.first); });
  Table table({"before", "now", "change", "layer"});
  for (size_t i = 0; i < std::min(changed.size(), rows); ++i)
    table.add({fmt::format("{}", countIn(*changed[i].second, "before")),
               fmt::format("{}", countIn(*changed[i].second, "after")),
               fmt::format("{:+}", changed[i].first),
               (*changed[i].second)["name"].get<std::string>()});
  if (!table.empty()) console.printText(table.text());
}

Json readSimulation(const std::string& path) {
  const Bytes bytes = check(mapFile(path));
  Json report = parseJson<Json>({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const Json schema = report.is_object() ? report.value("schema", Json()) : Json();
  if (schema != "candela.simulate/1" && schema != "candela.estimate/1")
    fail(kBadInput, "{}: it is no report of 'candela simulate --json'", path);
  for (const char* key : {"model", "npu"})
    if (!report.contains(key) || !report[key].is_string())
      fail(kBadInput, "{}: no '{}'", path, key);
  const bool hasLayers = report.contains("layers") && report["layers"].is_array();
  if (!hasLayers || !report.contains("cycles") || !report["cycles"].is_number_unsigned())
    fail(kBadInput, "{}: it has no time; simulate with --engine timed", path);
  for (const Json& layer : report["layers"])
    if (!layer.is_object() || !layer.contains("name") || !layer["name"].is_string() ||
        !layer.contains("cycles") || !layer["cycles"].is_number_unsigned())
      fail(kBadInput, "{}: a layer without 'name' or 'cycles'", path);
  return report;
}

} // namespace candela::tool
