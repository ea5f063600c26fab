#include "conformance/expectations.h"

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <algorithm>
#include <filesystem>

#include "conformance/report/corpus.h"
#include "core/support/file.h"
#include "core/support/text/nesting.h"

namespace candela::conformance {
namespace {

using Outcome = CaseResult::Outcome;

bool holds(const report::Waiver& entry) {
  if (entry.expires.empty()) return true;
  const auto expires = report::parseSuiteVersion(entry.expires);
  return expires && report::kSuiteVersion < *expires;
}

Status takeText(const toml::node& node, const std::string& where, std::string& to) {
  const auto value = node.value_exact<std::string>();
  if (!value || value->empty()) return badModel("{}: a text is wanted", where);
  to = *value;
  return Status::ok();
}

Result<report::Waiver> readEntry(const toml::table& table, const std::string& list,
                                 const std::string& file) {
  report::Waiver entry{.list = list, .cases = {}, .reason = {}};
  const auto at = [&](const toml::source_region& source) {
    return fmt::format("{}:{}", file, source.begin.line);
  };
  std::vector<std::pair<std::string_view, std::string*>> keys = {{"cases", &entry.cases},
                                                                 {"reason", &entry.reason}};
  if (list == "xfail")
    keys.insert(keys.end(), {{"owner", &entry.owner}, {"expires", &entry.expires}});
  for (const auto& [key, node] : table) {
    const auto known =
        std::ranges::find(keys, key.str(), [](const auto& pair) { return pair.first; });
    const std::string where = fmt::format("{}: {}.{}", at(key.source()), list, key.str());
    if (known == keys.end()) return badModel("{}: there is no such key", where);
    CDL_TRY(takeText(node, where, *known->second));
    if (key.str() == "expires")
      CDL_TRY(report::parseSuiteVersion(entry.expires).status().context(where));
  }
  for (const auto& [key, value] : keys)
    if (value->empty()) return badModel("{}: {}.{} is missing", at(table.source()), list, key);
  return entry;
}

} // namespace

Result<Expectations> Expectations::parse(const std::string& text, const std::string& file) {
  if (const size_t names = text::tomlLevels(text); names > text::kMostLevels)
    return badModel("{}: a key has {} names, {} are the limit", file, names, text::kMostLevels);
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed)
    return badModel("{}:{}: {}", file, parsed.error().source().begin.line,
                    parsed.error().description());
  Expectations expectations;
  expectations.file = file;
  for (const auto& [key, node] : parsed.table()) {
    const std::string list(key.str());
    const std::string where = fmt::format("{}:{}: {}", file, key.source().begin.line, list);
    if (list != "unsupported" && list != "xfail")
      return badModel("{}: lists are unsupported and xfail", where);
    const toml::array* entries = node.as_array();
    if (!entries) return badModel("{}: entries are written [[{}]]", where, list);
    for (const toml::node& entry : *entries) {
      if (!entry.is_table()) return badModel("{}: entries are written [[{}]]", where, list);
      CDL_ASSIGN(report::Waiver waiver, readEntry(*entry.as_table(), list, file));
      expectations.entries.push_back(std::move(waiver));
    }
  }
  return expectations;
}

Result<Expectations> Expectations::read(const std::string& file) {
  CDL_ASSIGN(const Bytes bytes, mapFile(file));
  return parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file);
}

void Expectations::apply(CaseResult& result) const {
  for (const report::Waiver& entry : entries) {
    const bool xfail = entry.list == "xfail";
    const Outcome waived = xfail ? Outcome::failed : Outcome::unsupported;
    if ((result.outcome != waived && result.outcome != Outcome::passed) || !holds(entry)) continue;
    if (!report::matchesQuery(result.name, entry.cases)) continue;
    if (result.outcome == Outcome::passed) {
      result.outcome = Outcome::failed;
      result.reason =
          fmt::format("passed, but {} lists it as {}: {}",
                      std::filesystem::path(file).filename().string(), entry.list, entry.reason);
      return; // no other entry may excuse that
    }
    result.reason = xfail ? fmt::format("{} ({}, until suite {}): {}", entry.reason, entry.owner,
                                        entry.expires, result.reason)
                          : fmt::format("{} ({})", entry.reason, result.reason);
    if (xfail) result.outcome = Outcome::xfail;
    return;
  }
}

std::vector<std::string> Expectations::problems(const std::vector<std::string>& addresses) const {
  std::vector<std::string> problems;
  for (const report::Waiver& entry : entries) {
    const std::string who = fmt::format("{}: {} '{}'", file, entry.list, entry.cases);
    if (!holds(entry))
      problems.push_back(fmt::format("{}: expired with suite {}, this is {} (owner: {})", who,
                                     entry.expires, report::kSuiteVersion.text(), entry.owner));
    if (std::ranges::none_of(addresses, [&](const std::string& address) {
          return report::matchesQuery(address, entry.cases);
        }))
      problems.push_back(fmt::format("{}: the suite has no such case", who));
  }
  return problems;
}

std::string expectationsBeside(const std::string& pluginFile) {
  std::filesystem::path path(pluginFile);
  path.replace_extension(".expectations.toml");
  std::error_code ignored;
  return !pluginFile.empty() && std::filesystem::exists(path, ignored) ? path.string() : "";
}

} // namespace candela::conformance
