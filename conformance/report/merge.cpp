#include "conformance/report/merge.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace candela::conformance::report {
namespace {

using Json = nlohmann::ordered_json;

/// What all shards of a run have in common, by the name that it has in a report.
Json commonOf(const Report& report) {
  Json all = reportJson(report), common = Json::object();
  for (const char* key :
       {"candela_version", "suite_version", "corpus_hash", "seed", "size", "to_primitives", "tiers",
        "queries", "selected", "absent", "options", "expectation_problems", "waivers"})
    common[key] = all[key];
  for (const char* key : {"name", "version", "sha256", "device"})
    common[std::string("plugin.") + key] = all["plugin"][key];
  for (Json& waiver : common["waivers"]) waiver.erase("count");
  return common;
}

} // namespace

Result<Report> mergeReports(std::vector<Report> shards, const std::vector<std::string>& files) {
  if (shards.empty()) return badArgument("there are no reports to merge");
  const Json common = commonOf(shards[0]);
  const uint64_t count = shards[0].setting.shard.count;
  std::map<uint64_t, size_t> places; ///< of shards 1..count
  for (size_t i = 0; i < shards.size(); ++i) {
    const Shard& shard = shards[i].setting.shard;
    const Json mine = commonOf(shards[i]);
    for (const auto& [key, value] : mine.items())
      if (value != common[key])
        return badArgument("{} and {} are of different runs: {} is {} and {}", files[0], files[i],
                           key, common[key].dump(), value.dump());
    if (shard.count != count)
      return badArgument("{} is shard {}, {} is shard {}", files[0], shards[0].setting.shard.text(),
                         files[i], shard.text());
    if (const auto [at, fresh] = places.emplace(shard.index, i); !fresh)
      return badArgument("shard {} stands in {} and in {}", shard.text(), files[at->second],
                         files[i]);
  }
  std::string missing;
  for (uint64_t k = 1; k <= count && missing.size() < 200; ++k)
    if (!places.contains(k))
      missing += fmt::format("{}{}/{}", missing.empty() ? "" : ", ", k, count);
  if (!missing.empty()) return badArgument("shard {} is missing", missing);

  Report whole = shards[places.at(1)];
  whole.setting.shard = {};
  whole.results.clear();
  whole.notInNightly.clear();
  for (const auto& [k, place] : places) {
    const uint64_t held = whole.selected / count + (k <= whole.selected % count);
    if (shards[place].results.size() != held)
      return badArgument("{} has {} cases, shard {}/{} of {} has {}", files[place],
                         shards[place].results.size(), k, count, whole.selected, held);
  }
  for (uint64_t i = 0; i < whole.selected; ++i)
    whole.results.push_back(std::move(shards[places.at(i % count + 1)].results[i / count]));
  whole.wallMilliseconds = 0;
  std::vector<std::string> apart;
  for (const Report& shard : shards) {
    whole.wallMilliseconds += shard.wallMilliseconds;
    apart.insert(apart.end(), shard.notInNightly.begin(), shard.notInNightly.end());
  }
  for (const CaseResult& result : whole.results)
    if (std::ranges::find(apart, result.name) != apart.end())
      whole.notInNightly.push_back(result.name);
  return whole;
}

} // namespace candela::conformance::report
