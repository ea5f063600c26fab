#include "core/conform/report.h"

#include <fnmatch.h>

#include <map>
#include <nlohmann/json.hpp>

#include "core/conform/reasons.h"
#include "core/support/text/scan.h"

namespace candela::conform {
namespace {

using Json = nlohmann::ordered_json;
using Outcome = CaseResult::Outcome;

double ratio(uint64_t part, uint64_t whole) {
  return whole ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

/// Text of an XML attribute or element; characters that XML cannot hold become '?'.
std::string xmlEscaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
    case '<': out += "&lt;"; break;
    case '>': out += "&gt;"; break;
    case '&': out += "&amp;"; break;
    case '"': out += "&quot;"; break;
    case '\n': out += "&#10;"; break;
    default: out += static_cast<unsigned char>(c) < 0x20 && c != '\t' ? '?' : c;
    }
  }
  return out;
}

std::string tierOf(const std::string& name) { return name.substr(0, name.find(':')); }

} // namespace

Summary summarise(const std::vector<CaseResult>& results) {
  Summary summary;
  summary.total = results.size();
  for (const CaseResult& result : results) {
    summary.passed += result.outcome == Outcome::passed;
    summary.failed += result.outcome == Outcome::failed;
    summary.unsupported += result.outcome == Outcome::unsupported;
    if (result.outcome == Outcome::unsupported) ++summary.unsupportedByClass[reasonClass(result.reason)];
    summary.xfail += result.outcome == Outcome::xfail;
    summary.rawPassed += result.rawPassed;
    summary.work += result.work;
    summary.milliseconds += result.milliseconds;
  }
  return summary;
}

nlohmann::ordered_json resultsJson(const std::vector<CaseResult>& results) {
  const Summary summary = summarise(results);
  Json failed = Json::array(), unsupported = Json::array(), xfail = Json::array();
  for (const CaseResult& result : results) {
    if (result.outcome == Outcome::passed) continue;
    Json& list = result.outcome == Outcome::failed ? failed : result.outcome == Outcome::xfail ? xfail : unsupported;
    list.push_back({{"case", result.name}, {"reason", result.reason}});
    if (result.outcome == Outcome::unsupported) list.back()["class"] = reasonClass(result.reason);
  }
  const Work& work = summary.work;
  return {{"total", summary.total},
          {"passed", summary.passed},
          {"raw_passed", summary.rawPassed},
          {"failed", std::move(failed)},
          {"unsupported", std::move(unsupported)},
          {"unsupported_by_class", summary.unsupportedByClass},
          {"xfail", std::move(xfail)},
          {"native", {{"nodes", ratio(work.nativeNodes, work.nodes)}, {"macs", ratio(work.nativeMacs, work.macs)}}},
          {"nodes", {{"native", work.nativeNodes}, {"total", work.nodes}}},
          {"macs", {{"native", work.nativeMacs}, {"total", work.macs}}}};
}

std::string junitXml(const std::vector<CaseResult>& results, const std::string& backend) {
  std::map<std::string, std::vector<CaseResult>> tiers;
  for (const CaseResult& result : results) tiers[tierOf(result.name)].push_back(result);
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n";
  for (const auto& [tier, cases] : tiers) {
    const Summary summary = summarise(cases);
    out += fmt::format(
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\" time=\"{:.3f}\">\n",
        xmlEscaped(backend + ":" + tier), summary.total, summary.failed, summary.unsupported + summary.xfail,
        summary.milliseconds / 1000);
    for (const CaseResult& result : cases) {
      out += fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3f}\"", xmlEscaped(tier),
                         xmlEscaped(result.name), result.milliseconds / 1000);
      if (result.outcome == Outcome::passed) {
        out += "/>\n";
        continue;
      }
      const char* element = result.outcome == Outcome::failed ? "failure" : "skipped";
      out += fmt::format("><{} message=\"{}\"/></testcase>\n", element, xmlEscaped(result.reason));
    }
    out += "  </testsuite>\n";
  }
  return out + "</testsuites>\n";
}

bool matchesQuery(const std::string& name, const std::string& query) {
  const bool hasTier = query.find(':') != std::string::npos;
  const std::string subject = hasTier ? name : name.substr(name.find(':') + 1);
  return fnmatch(query.c_str(), subject.c_str(), 0) == 0;
}

Result<Shard> parseShard(const std::string& given) {
  const std::vector<std::string> parts = text::split(given, '/');
  const auto index = text::parseNumber<uint64_t>(parts.front()), count = text::parseNumber<uint64_t>(parts.back());
  if (parts.size() != 2 || !index || !count || *index < 1 || *index > *count)
    return badArgument("shard '{}' is not K/N with 1 <= K <= N", given);
  return Shard{*index, *count};
}

} // namespace candela::conform
