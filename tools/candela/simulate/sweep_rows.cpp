// What jobs of a sweep left, and the rows that are made of it.
#include <filesystem>
#include <map>

#include "core/support/file.h"
#include "core/support/json.h"
#include "tools/candela/simulate/files.h"
#include "tools/candela/simulate/sweep_files.h"

namespace candela::tool {

namespace fs = std::filesystem;

std::string refusalOf(const Sweep& sweep, const SweepJob& job) {
  return sweep.folder + "/" + job.id + ".refused";
}

Result<Json> readResult(const std::string& path) {
  constexpr const char* kCounts[] = {"/cycles", "/dram_bytes/all", "/host_macs",
                                     "/network/host_steps"};
  constexpr const char* kNumbers[] = {"/time_ms", "/mac_utilization", "/time/peak_macs_per_cycle"};
  CDL_ASSIGN(const Bytes bytes, mapFile(path));
  const Json json = parseJson<Json>({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const Json schema = json.is_object() ? json.value("schema", Json()) : Json();
  if (schema != "candela.simulate/1" && schema != "candela.estimate/1")
    return badModel("{}: no report of a simulation", path);
  const auto at = [&](const char* place) {
    const Json::json_pointer pointer(place);
    return json.contains(pointer) ? json[pointer] : Json();
  };
  for (const char* place : kCounts)
    if (!at(place).is_number_unsigned()) return badModel("{}: {} is no count", path, place);
  for (const char* place : kNumbers)
    if (!at(place).is_number()) return badModel("{}: {} is no number", path, place);
  return json;
}

std::string lastLine(const std::string& path) {
  const auto bytes = mapFile(path);
  if (!bytes) return "";
  std::string text(reinterpret_cast<const char*>(bytes.value().data()), bytes.value().size());
  while (!text.empty() && text.back() == '\n') text.pop_back();
  text = text.substr(text.rfind('\n') + 1);
  return text.starts_with("error: ") ? text.substr(7) : text;
}

/// The times of a row: of the device, of the host where it was measured, and of both. Where the
/// host has steps that nobody measured, there is the first alone.
static void addNetwork(const Json& result, int64_t batch, Json& row) {
  const Json& network = result["network"];
  row["device_ms"] = result["time_ms"];
  row["host_steps"] = network["host_steps"];
  if (!network.contains("time_ms")) return;
  const double milliseconds = network["time_ms"].get<double>();
  row["host_ms"] = network["host_ms"];
  row["time_ms"] = milliseconds;
  row["inferences_per_s"] =
      milliseconds > 0 ? 1000 * static_cast<double>(batch) / milliseconds : 0.0;
}

/// Rows of one model and batch size are compared by their whole time. Where some have none, those
/// that leave more to the host than another one are not comparable with it.
static void markComparable(Json& rows) {
  struct HostShare {
    uint64_t macs = UINT64_MAX, steps = UINT64_MAX;
    auto operator<=>(const HostShare&) const = default;
  };
  const auto shareOf = [](const Json& row) {
    return HostShare{row["host_macs"].get<uint64_t>(), row["host_steps"].get<uint64_t>()};
  };
  std::map<std::pair<Json, Json>, HostShare> least;
  for (const Json& row : rows)
    if (row["status"] == "done") {
      HostShare& share = least[{row["model"], row["batch"]}];
      share = std::min(share, shareOf(row));
    }
  for (Json& row : rows) {
    if (row["status"] != "done") continue;
    const bool isWhole = row.contains("time_ms");
    if (isWhole || shareOf(row) == least[{row["model"], row["batch"]}]) continue;
    row["comparable"] = false;
    row["why"] = "leaves more to the host than another configuration, and host_rates does not say "
                 "how long that takes";
  }
}

Json sweepRows(const Sweep& sweep) {
  Json rows = Json::array();
  for (const SweepJob& job : sweep.jobs) {
    Json row = {{"id", job.id},
                {"model", fs::path(job.model).filename().string()},
                {"batch", job.batch},
                {"npu", job.base}};
    for (const std::string& key : sweep.varied) row[key] = job.varied.at(key);
    if (const auto result = readResult(resultOf(sweep, job)); result && job.refused.empty()) {
      row["status"] = "done";
      row["cycles"] = result.value()["cycles"];
      addNetwork(result.value(), job.batch, row);
      row["mac_utilization"] = result->value("mac_utilization", 0.0);
      row["dram_bytes"] = result->value("dram_bytes", Json::object()).value("all", uint64_t{0});
      if (result->contains("energy")) row["energy_nj"] = result->at("energy").value("nj", 0.0);
      row["macs_per_cycle"] =
          static_cast<uint64_t>(result->at("time").value("peak_macs_per_cycle", 0.0));
      row["scratchpad_bytes"] = result->value("scratchpad_bytes", uint64_t{0});
      row["host_macs"] = result->value("host_macs", uint64_t{0});
      if (const std::string alone = modelOnlyOf(result.value()); !alone.empty())
        row["model_only"] = alone;
    } else if (!job.refused.empty() || !lastLine(refusalOf(sweep, job)).empty()) {
      row["status"] = "refused";
      row["why"] = job.refused.empty() ? lastLine(refusalOf(sweep, job)) : job.refused;
    } else {
      row["status"] = "not run";
    }
    rows.push_back(std::move(row));
  }
  markComparable(rows);
  return rows;
}

} // namespace candela::tool
