#include "conformance/report/query.h"

#include <fnmatch.h>

#include <algorithm>

#include "core/support/text/scan.h"

namespace candela::conformance::report {
namespace {

bool glob(const std::string& pattern, std::string_view text) {
  return fnmatch(pattern.c_str(), std::string(text).c_str(), 0) == 0;
}

/// "head:term;term;*", where each term stands in the address.
bool matchesTerms(const std::string& address, const std::string& query) {
  const size_t row = rowOf(address).size(), head = rowOf(query).size();
  if (row == address.size() || head == query.size() ||
      !glob(query.substr(0, head), address.substr(0, row)))
    return false;
  const std::vector<std::string> has = text::split(address.substr(row + 1), ';');
  std::vector<std::string> wanted = text::split(query.substr(head + 1), ';');
  const bool open = std::erase(wanted, "*") > 0;
  return (open || wanted.size() == has.size()) &&
         std::ranges::all_of(wanted, [&](const std::string& term) {
           return std::ranges::any_of(has, [&](const std::string& one) { return glob(term, one); });
         });
}

} // namespace

std::string_view tierOf(std::string_view address) { return address.substr(0, address.find(':')); }

std::string_view rowOf(std::string_view address) {
  const size_t first = address.find(':');
  return first == address.npos ? address : address.substr(0, address.find(':', first + 1));
}

bool matchesQuery(const std::string& address, const std::string& query) {
  const size_t tier = tierOf(address).size();
  const std::string_view below =
      tier < address.size() ? std::string_view(address).substr(tier + 1) : address;
  return address == query || glob(query, address) || glob(query, below) ||
         matchesTerms(address, query);
}

std::vector<size_t> matchingCases(const std::vector<Case>& cases,
                                  const std::vector<std::string>& queries) {
  std::vector<char> taken(cases.size(), queries.empty());
  for (const std::string& query : queries) {
    const auto literal = std::ranges::find(cases, query, &Case::address);
    if (literal != cases.end()) {
      taken[static_cast<size_t>(literal - cases.begin())] = true;
      continue;
    }
    for (size_t i = 0; i < cases.size(); ++i)
      taken[i] = taken[i] || matchesQuery(cases[i].address, query);
  }
  std::vector<size_t> indices;
  for (size_t i = 0; i < cases.size(); ++i)
    if (taken[i]) indices.push_back(i);
  return indices;
}

Result<Shard> parseShard(const std::string& given) {
  const std::vector<std::string> parts = text::split(given, '/');
  const auto index = text::parseNumber<uint64_t>(parts.front()),
             count = text::parseNumber<uint64_t>(parts.back());
  if (parts.size() != 2 || !index || !count || *index < 1 || *index > *count)
    return badArgument("shard '{}' is not K/N with 1 <= K <= N", given);
  return Shard{*index, *count};
}

} // namespace candela::conformance::report
