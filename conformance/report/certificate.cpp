#include "conformance/report/certificate.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "conformance/report/tally.h"
#include "core/support/file.h"
#include "core/support/hash.h"
#include "core/support/json.h"

namespace candela::conformance::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSchema = "candela.conform-certificate/1";
/// Fields that bind the others.
constexpr const char* kHashes = "field_hashes";
constexpr const char* kHash = "hash";

std::string hashOf(const Json& json) {
  // Without an order of keys, so that only contents count.
  const std::string text =
      nlohmann::json(json).dump(-1, ' ', false, Json::error_handler_t::replace);
  return hashText(sha256(text.data(), text.size()));
}

Json withoutTimes(Json json) {
  for (auto at = json.begin(); at != json.end();)
    if (at.key().ends_with("_ms"))
      at = json.erase(at);
    else
      ++at;
  return json;
}

} // namespace

Json certificateOf(const Report& report, const std::string& reportFile, const std::string& text) {
  const Json told = reportJson(report);
  Json certificate{{"schema", kSchema}};
  for (const char* key :
       {"candela_version", "suite_version", "corpus_hash", "size", "seed", "to_primitives", "tiers",
        "queries", "shard", "backend", "options", "plugin", "conformant", "problems", "total"})
    certificate[key] = told[key];
  const Tally all = tallyOf(report.results);
  for (size_t i = 0; i < kOutcomeNames.size(); ++i) certificate[kOutcomeNames[i]] = all.counts[i];
  for (const auto& [tier, tally] : told["by_tier"].items())
    certificate["by_tier"][tier] = withoutTimes(tally);
  for (const char* key : {"native", "nodes", "macs", "rows", "waivers", "absent"})
    certificate[key] = told[key];
  certificate["report"] = {{"file", reportFile},
                           {"sha256", hashText(sha256(text.data(), text.size()))}};
  Json hashes = Json::object();
  for (const auto& [key, value] : certificate.items()) hashes[key] = hashOf(value);
  certificate[kHashes] = std::move(hashes);
  certificate[kHash] = hashOf(certificate[kHashes]);
  return certificate;
}

Scope scopeOf(const Report& report) {
  const Candidate& candidate = report.candidate;
  Scope scope;
  scope.of = candidate.name;
  if (!candidate.version.empty()) scope.of += " " + candidate.version;
  if (!candidate.device.empty()) scope.of += " on " + candidate.device;
  for (const auto& [name, value] : candidate.options)
    scope.of += fmt::format(", {}={}", name, value);
  scope.of += fmt::format("; suite {}, size {}, seed {}, tiers {}", report.suiteVersion,
                          sizeName(report.setting.size), report.setting.seed,
                          fmt::join(report.setting.tiers, ", "));
  if (report.setting.toPrimitives) scope.of += ", in primitives";
  for (const auto& [tier, why] : report.absent) scope.of += fmt::format("; without {}", tier);
  const Tally all = tallyOf(report.results);
  scope.result = fmt::format("{} of {} cases failed", all[CaseResult::Outcome::failed], all.total);
  for (size_t i = 0; i < kOutcomeNames.size(); ++i)
    if (static_cast<CaseResult::Outcome>(i) != CaseResult::Outcome::failed && all.counts[i])
      scope.result += fmt::format(", {} {}", all.counts[i], kOutcomeNames[i]);
  for (const std::string& problem : problemsOf(report)) scope.result += "; " + problem;
  return scope;
}

Result<Verification> verifyCertificate(const std::string& file, const std::string& pluginFile) {
  CDL_ASSIGN(const Bytes bytes, mapFile(file));
  const Json certificate =
      parseJson<Json>({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!certificate.is_object() || certificate.value("schema", Json()) != kSchema)
    return badModel("{}: no certificate of conform", file);
  Verification verified;
  std::vector<std::string>& problems = verified.problems;
  const Json hashes = certificate.value(kHashes, Json::object());
  if (!hashes.is_object()) return badModel("{}: {} is no object", file, kHashes);
  for (const auto& [key, value] : certificate.items()) {
    if (key == kHashes || key == kHash) continue;
    if (!hashes.contains(key))
      problems.push_back(fmt::format("{}: has no hash", key));
    else if (hashes[key] != hashOf(value))
      problems.push_back(fmt::format("{}: {} is not what was certified", key, value.dump()));
  }
  for (const auto& [key, value] : hashes.items())
    if (!certificate.contains(key)) problems.push_back(fmt::format("{}: is missing", key));
  if (certificate.value(kHash, Json()) != hashOf(hashes))
    problems.push_back(fmt::format("{}: not that of the fields", kHash));

  const Json report = certificate.value("report", Json::object());
  const std::string name =
      report.is_object() && report.contains("file") && report["file"].is_string()
          ? std::filesystem::path(report["file"].get<std::string>()).filename().string()
          : "";
  const std::string path = (std::filesystem::path(file).parent_path() / name).string();
  if (const Result<Bytes> beside =
          name.empty() ? Result<Bytes>(badModel("is not named")) : mapFile(path);
      !beside) {
    problems.push_back(fmt::format("report: {}", beside.status().message()));
  } else {
    const std::string text(reinterpret_cast<const char*>(beside->data()), beside->size());
    if (report.value("sha256", Json()) != hashText(sha256(text.data(), text.size())))
      problems.push_back(fmt::format("report: {} is not the file that was certified", path));
    if (const Result<Report> parsed = parseReport(text, path); !parsed) {
      problems.push_back(fmt::format("report: {}", parsed.status().message()));
    } else {
      verified.scope = scopeOf(*parsed);
      const Json wanted = certificateOf(*parsed, name, text);
      for (const auto& [key, value] : wanted.items())
        if (key != "report" && key != kHashes && key != kHash &&
            certificate.value(key, Json()) != value)
          problems.push_back(fmt::format("{}: {}, but {} in the report", key,
                                         certificate.value(key, Json()).dump(), value.dump()));
    }
  }
  if (!pluginFile.empty()) {
    CDL_ASSIGN(const std::string hash, fileHash(pluginFile));
    const Json plugin = certificate.value("plugin", Json::object());
    const Json told = plugin.is_object() ? plugin.value("sha256", Json()) : Json();
    if (told != hash)
      problems.push_back(
          fmt::format("plugin.sha256: {}, but {} has {}", told.dump(), pluginFile, hash));
  }
  return verified;
}

} // namespace candela::conformance::report
