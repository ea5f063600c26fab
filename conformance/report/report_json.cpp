#include "conformance/report/report_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "conformance/report/reasons.h"
#include "conformance/report/tally.h"
#include "core/support/file.h"
#include "core/support/text/nesting.h"
#include "core/support/text/shown.h"

namespace candela::conformance::report {
namespace {

using Json = nlohmann::ordered_json;
using Outcome = CaseResult::Outcome;

constexpr const char* kSchema = "candela.conform/1";

/// Fields of a report that are members of it, in both directions.
template <typename Visit> void forEachField(Visit visit, auto& report) {
  visit("candela_version", report.candelaVersion);
  visit("suite_version", report.suiteVersion);
  visit("corpus_hash", report.corpusHash);
  visit("backend", report.candidate.backend);
  visit("options", report.candidate.options);
  visit("seed", report.setting.seed);
  visit("to_primitives", report.setting.toPrimitives);
  visit("onnx_data", report.setting.onnxData);
  visit("tiers", report.setting.tiers);
  visit("queries", report.setting.queries);
  visit("selected", report.selected);
  visit("absent", report.absent);
  visit("not_in_nightly", report.notInNightly);
  visit("expectation_problems", report.expectationProblems);
  visit("wall_ms", report.wallMilliseconds);
}
template <typename Visit> void forEachCandidateField(Visit visit, auto& candidate) {
  visit("file", candidate.file);
  visit("sha256", candidate.sha256);
  visit("name", candidate.name);
  visit("version", candidate.version);
  visit("description", candidate.description);
  visit("device", candidate.device);
  visit("abi_major", candidate.abiMajor);
  visit("abi_minor", candidate.abiMinor);
}
template <typename Visit> void forEachWaiverField(Visit visit, auto& waiver) {
  visit("list", waiver.list);
  visit("cases", waiver.cases);
  visit("reason", waiver.reason);
  visit("owner", waiver.owner);
  visit("expires", waiver.expires);
}

/// A value as a message bears it.
std::string shown(const Json& json) {
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() > 60 ? text.substr(0, 60) + " ..." : text;
}

/// Why a text is no report, in words for whoever has the file.
struct Unreadable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <typename T> constexpr const char* wordFor() {
  if constexpr (std::is_same_v<T, bool>) return "true or false";
  if constexpr (std::is_unsigned_v<T>) return "a whole number";
  if constexpr (std::is_arithmetic_v<T>) return "a number";
  if constexpr (std::is_same_v<T, std::string>) return "text";
  return "a list or table of its kind";
}

/// A field of an object, or an element of a list.
const Json& part(const Json& json, const char* name) {
  if (!json.is_object())
    throw Unreadable(
        fmt::format("{} stands where fields should, '{}' among them", shown(json), name));
  if (const auto at = json.find(name); at != json.end()) return *at;
  throw Unreadable(fmt::format("the field '{}' is missing", name));
}

template <typename T> void take(const Json& json, const char* name, T& value) {
  const Json& given = part(json, name);
  try {
    const bool fits =
        !std::is_unsigned_v<T> || std::is_same_v<T, bool> || given.is_number_unsigned();
    if (fits) return given.get_to(value), void();
  } catch (const Json::exception&) {} // said below
  throw Unreadable(fmt::format("the field '{}' is {}, not {}", name, shown(given), wordFor<T>()));
}
template <typename T> T taken(const Json& json, const char* name) {
  T value{};
  take(json, name, value);
  return value;
}
template <typename T> T takenOr(const Json& json, const char* name, T otherwise) {
  if (json.contains(name)) take(json, name, otherwise);
  return otherwise;
}

/// What a tally is in a list of tiers.
Json tallyJson(const Tally& tally) {
  Json json{{"total", tally.total}};
  for (size_t i = 0; i < kOutcomeNames.size(); ++i) json[kOutcomeNames[i]] = tally.counts[i];
  json["cases_ms"] = tally.milliseconds;
  return json;
}

/// Of one outcome, with reasons.
Json listed(const std::vector<CaseResult>& results, Outcome outcome) {
  Json list = Json::array();
  for (const CaseResult& result : results) {
    if (result.outcome != outcome) continue;
    list.push_back({{"case", result.name}, {"reason", result.reason}});
    if (outcome == Outcome::unsupported) list.back()["class"] = reasonClass(result.reason);
    if (result.again != CaseResult::Again::unknown) list.back()["steady"] = !result.isUnsteady();
  }
  return list;
}

} // namespace

Json caseJson(const CaseResult& result) {
  Json json{{"case", result.name}, {"outcome", outcomeName(result.outcome)}};
  if (!result.reason.empty()) json["reason"] = result.reason;
  if (result.again != CaseResult::Again::unknown) json["steady"] = !result.isUnsteady();
  if (result.rawPassed) json["raw_passed"] = true;
  if (result.work.nodes) json["nodes"] = {result.work.nativeNodes, result.work.nodes};
  if (result.work.macs) json["macs"] = {result.work.nativeMacs, result.work.macs};
  if (!result.placement.empty()) json["placement"] = result.placement;
  json["case_ms"] = result.milliseconds;
  return json;
}

namespace {

CaseResult caseOf(const Json& json) {
  CaseResult result;
  take(json, "case", result.name);
  const auto outcome = taken<std::string>(json, "outcome");
  if (!outcomeNamed(outcome))
    throw Unreadable(fmt::format("{}: '{}' is no outcome of a case", result.name, outcome));
  result.outcome = *outcomeNamed(outcome);
  result.reason = takenOr(json, "reason", std::string());
  if (json.contains("steady"))
    result.again =
        taken<bool>(json, "steady") ? CaseResult::Again::same : CaseResult::Again::otherwise;
  result.rawPassed = takenOr(json, "raw_passed", false);
  take(json, "case_ms", result.milliseconds);
  const auto pair = [&](const char* key, uint64_t& native, uint64_t& all) {
    const auto both = takenOr(json, key, std::vector<uint64_t>{0, 0});
    if (both.size() != 2)
      throw Unreadable(
          fmt::format("{}: '{}' has {} numbers, not 2", result.name, key, both.size()));
    native = both[0];
    all = both[1];
  };
  pair("nodes", result.work.nativeNodes, result.work.nodes);
  pair("macs", result.work.nativeMacs, result.work.macs);
  result.placement = takenOr(json, "placement", std::vector<std::string>());
  return result;
}

/// Where the parser stopped, as "line 3, column 7".
std::string placeIn(const std::string& text, size_t byte) {
  const std::string_view before(text.data(), std::min(byte ? byte - 1 : 0, text.size()));
  const size_t line = before.rfind('\n');
  return fmt::format("line {}, column {}", 1 + std::ranges::count(before, '\n'),
                     before.size() - (line == before.npos ? 0 : line + 1) + 1);
}

} // namespace

Result<CaseResult> parseCase(const Json& json) {
  try {
    return caseOf(json);
  } catch (const Unreadable& error) {
    return badModel("no record of a case: {}", error.what());
  }
}

Json reportJson(const Report& report) {
  Json json{{"schema", kSchema}};
  forEachField([&](const char* name, const auto& value) { json[name] = value; }, report);
  json["command"] = runCommand(report);
  json["size"] = sizeName(report.setting.size);
  json["shard"] = report.setting.shard.text();
  forEachCandidateField([&](const char* name, const auto& value) { json["plugin"][name] = value; },
                        report.candidate);
  if (!report.candidate.idleRows.empty()) json["plugin"]["idle_rows"] = report.candidate.idleRows;

  const Tally all = tallyOf(report.results);
  json["conformant"] = isConformant(report);
  json["problems"] = problemsOf(report);
  json["total"] = all.total;
  json["passed"] = all[Outcome::passed];
  json["raw_passed"] = all.rawPassed;
  for (const Outcome outcome : {Outcome::failed, Outcome::unsupported, Outcome::emulated,
                                Outcome::xfail, Outcome::mistrusted})
    json[outcomeName(outcome)] = listed(report.results, outcome);
  json["unsupported_by_class"] = unsupportedByClass(report.results);
  json["by_tier"] = Json::object();
  for (const auto& [tier, tally] : tallyByTier(report.results))
    json["by_tier"][tier] = tallyJson(tally);
  const Native native = nativeOf(report.results);
  json["native"] = {{"nodes", ratioOf(native.work.nativeNodes, native.work.nodes)},
                    {"macs", ratioOf(native.work.nativeMacs, native.work.macs)},
                    {"rows", native.rowShare}};
  json["nodes"] = {{"native", native.work.nativeNodes}, {"total", native.work.nodes}};
  json["macs"] = {{"native", native.work.nativeMacs}, {"total", native.work.macs}};
  json["rows"] = {{"native", native.wholeRows}, {"total", native.rows}};
  json["placement"] = Json::object();
  for (const CaseResult& result : report.results)
    if (!result.placement.empty()) json["placement"][result.name] = result.placement;
  json["waivers"] = Json::array();
  for (const Waiver& waiver : report.waivers) {
    Json& entry = json["waivers"].emplace_back(Json::object());
    forEachWaiverField([&](const char* name, const auto& value) { entry[name] = value; }, waiver);
    entry["count"] = std::ranges::count_if(report.results, [&](const CaseResult& result) {
      return matchesQuery(result.name, waiver.cases);
    });
  }
  json["cases"] = Json::array();
  for (const CaseResult& result : report.results) json["cases"].push_back(caseJson(result));
  return json;
}

std::string reportText(const Json& report) {
  return text::shownJson(report.dump(2, ' ', false, Json::error_handler_t::replace)) + "\n";
}

Result<Report> parseReport(const std::string& text, const std::string& file) {
  if (const size_t levels = text::jsonLevels(text); levels > text::kMostLevels)
    return badModel("{}: no report of conform: nested {} deep", file, levels);
  Report report;
  try {
    const Json json = Json::parse(text);
    if (const auto schema = taken<std::string>(json, "schema"); schema != kSchema)
      return badModel("{}: the schema is {}, not {}: --json of `candela conform` writes such", file,
                      schema, kSchema);
    forEachField([&](const char* name, auto& value) { take(json, name, value); }, report);
    const auto size = taken<std::string>(json, "size");
    if (!sizeNamed(size))
      throw Unreadable(
          fmt::format("the field 'size' is '{}'; sizes are quick, full, nightly", size));
    report.setting.size = *sizeNamed(size);
    CDL_ASSIGN(report.setting.shard, parseShard(taken<std::string>(json, "shard")).context(file));
    forEachCandidateField(
        [&](const char* name, auto& value) { take(part(json, "plugin"), name, value); },
        report.candidate);
    if (part(json, "plugin").contains("idle_rows"))
      take(part(json, "plugin"), "idle_rows", report.candidate.idleRows);
    for (const Json& entry : taken<std::vector<Json>>(json, "waivers")) {
      Waiver& waiver = report.waivers.emplace_back();
      forEachWaiverField([&](const char* name, auto& value) { take(entry, name, value); }, waiver);
    }
    for (const Json& one : taken<std::vector<Json>>(json, "cases"))
      report.results.push_back(caseOf(one));
  } catch (const Json::parse_error& error) {
    return badModel("{}: is no JSON from {} on: cut off or edited?", file,
                    placeIn(text, error.byte));
  } catch (const Unreadable& error) {
    return badModel("{}: no report of conform: {}", file, error.what());
  }
  return report;
}

Result<Report> readReport(const std::string& file) {
  CDL_ASSIGN(const Bytes bytes, mapFile(file));
  return parseReport({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file);
}

} // namespace candela::conformance::report
