#include "conformance/report/tally.h"

#include <algorithm>

#include "conformance/report/query.h"
#include "conformance/report/reasons.h"

namespace candela::conformance::report {
namespace {

using Outcome = CaseResult::Outcome;

template <typename Key> Tallies tallyBy(std::span<const CaseResult> results, Key keyOf) {
  Tallies tallies;
  std::map<std::string, size_t, std::less<>> places;
  for (const CaseResult& result : results) {
    const std::string_view key = keyOf(result.name);
    if (key.empty()) continue;
    const auto [at, fresh] = places.emplace(key, tallies.size());
    if (fresh) tallies.emplace_back(key, Tally());
    tallies[at->second].second.add(result);
  }
  return tallies;
}

} // namespace

std::optional<Outcome> outcomeNamed(std::string_view name) {
  const auto at = std::ranges::find(kOutcomeNames, name);
  if (at == kOutcomeNames.end()) return std::nullopt;
  return static_cast<Outcome>(at - kOutcomeNames.begin());
}

void Tally::add(const CaseResult& result) {
  ++total;
  ++counts[static_cast<size_t>(result.outcome)];
  rawPassed += result.rawPassed;
  work += result.work;
  milliseconds += result.milliseconds;
}

Tally tallyOf(std::span<const CaseResult> results) {
  Tally tally;
  for (const CaseResult& result : results) tally.add(result);
  return tally;
}

Tallies tallyByTier(std::span<const CaseResult> results) {
  return tallyBy(results, [](const std::string& name) { return tierOf(name); });
}

Tallies tallyByRow(std::span<const CaseResult> results) {
  return tallyBy(results, [](const std::string& name) {
    const std::string_view row = rowOf(name);
    return row.size() == name.size() ? std::string_view() : row;
  });
}

double ratioOf(uint64_t part, uint64_t whole) {
  return whole ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

Native nativeOf(std::span<const CaseResult> results) {
  const auto isOfRows = [](std::string_view address) {
    return tierOf(address) == "primitives" || tierOf(address) == "ops";
  };
  Native native;
  for (const CaseResult& result : results)
    if (!isOfRows(result.name)) native.work += result.work;
  for (const auto& [name, tally] : tallyByRow(results)) {
    if (!isOfRows(name)) continue;
    const uint64_t trusted = tally.total - tally[Outcome::mistrusted];
    ++native.rows;
    native.wholeRows += trusted > 0 && tally[Outcome::passed] == trusted;
    native.rowShare += ratioOf(tally[Outcome::passed], trusted);
  }
  if (native.rows) native.rowShare /= static_cast<double>(native.rows);
  return native;
}

std::map<std::string, uint64_t> unsupportedByClass(std::span<const CaseResult> results) {
  std::map<std::string, uint64_t> counts;
  for (const CaseResult& result : results)
    if (result.outcome == Outcome::unsupported) ++counts[reasonClass(result.reason)];
  return counts;
}

} // namespace candela::conformance::report
