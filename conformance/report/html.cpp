#include "conformance/report/html.h"

#include <algorithm>
#include <numeric>

#include "conformance/report/escape.h"
#include "conformance/report/html_style.h"
#include "conformance/report/tally.h"

namespace candela::conformance::report {
namespace {

using Outcome = CaseResult::Outcome;

constexpr size_t kFailuresShown = 2000, kFailuresOpen = 8, kSlowestShown = 20, kReasonsShown = 40;

/// In the order of a bar, with what each means.
constexpr std::array<std::pair<Outcome, const char*>, 6> kOutcomes = {{
    {Outcome::passed, "right, by the device itself"},
    {Outcome::failed, "wrong, refused what it claims, crashed or hung"},
    {Outcome::xfail, "fails, as was expected, for a reason that is told"},
    {Outcome::mistrusted, "right, within bounds that are too wide to say much"},
    {Outcome::emulated, "left to the SDK by the device's own claim"},
    {Outcome::unsupported, "not claimed"},
}};

std::string grouped(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, ",");
  return text;
}

std::string timeOf(double milliseconds) {
  if (milliseconds < 1000)
    return fmt::format("{:.{}f} ms", milliseconds, milliseconds < 10 ? 1 : 0);
  if (milliseconds < 120000) return fmt::format("{:.1f} s", milliseconds / 1000);
  return fmt::format("{:.1f} min", milliseconds / 60000);
}

std::string percent(double ratio) { return fmt::format("{:.1f} %", 100 * ratio); }

std::string bar(const Tally& tally) {
  std::string out = "<div class=\"bar\" aria-hidden=\"true\">";
  for (const auto& [outcome, meaning] : kOutcomes)
    if (tally[outcome])
      out += fmt::format("<i class=\"{}\" style=\"width:{:.3f}%\"></i>", outcomeName(outcome),
                         100 * ratioOf(tally[outcome], tally.total));
  return out + "</div>";
}

std::string numberCell(const char* name, uint64_t number, bool hot = false) {
  const char* emphasis = hot ? " hot" : "";
  if (number == 0) emphasis = " zero";
  return fmt::format("<td class=\"n{}\" data-k=\"{}\">{}</td>", emphasis, name, grouped(number));
}

/// A cell of text, named where a row is read as a block.
std::string textCell(const char* name, const std::string& markup) {
  return fmt::format("<td data-k=\"{}\">{}</td>", name, markup);
}

std::string code(std::string_view text) { return "<code>" + markupEscaped(text) + "</code>"; }

/// `columns` that begin with '#' hold numbers.
std::string table(std::initializer_list<const char*> columns, const std::string& rows) {
  std::string out = "<table><thead><tr>";
  for (const char* column : columns)
    out += *column == '#' ? fmt::format("<th class=\"n\" scope=\"col\">{}</th>", column + 1)
                          : fmt::format("<th scope=\"col\">{}</th>", column);
  return out + "</tr></thead><tbody>\n" + rows + "</tbody></table>\n";
}

std::string section(const std::string& title, const std::string& remark, const std::string& body) {
  return fmt::format("<section><h2>{}{}</h2>\n{}</section>\n", title,
                     remark.empty() ? "" : " <small>" + remark + "</small>", body);
}

std::string folded(const std::string& title, const std::string& remark, const std::string& body) {
  return fmt::format("<section class=\"folded\"><details><summary><h2>{} "
                     "<small>{}</small></h2></summary>\n{}</details></section>\n",
                     title, remark, body);
}

const char* verdictOf(const Report& report) {
  if (!isConformant(report)) return "✗ Failed";
  return report.isWhole() ? "✓ Passed" : "✓ Passed, in part";
}

std::string header(const Report& report) {
  const Candidate& candidate = report.candidate;
  const Setting& setting = report.setting;
  const char* chosen = setting.queries.empty() ? "" : " · chosen cases only";
  std::string device = candidate.device.empty() ? "" : markupEscaped(candidate.device) + " · ";
  return fmt::format("<div class=\"top\"><div><p class=\"eyebrow\">Candela conformance "
                     "report</p>\n<h1>{} <small>{}</small></h1>\n"
                     "<p class=\"soft\">{}suite {} · {} · seed {}{}{}</p></div>\n<div "
                     "class=\"verdict {}\">{}</div></div>\n",
                     markupEscaped(candidate.name), markupEscaped(candidate.version), device,
                     markupEscaped(report.suiteVersion), sizeName(setting.size), setting.seed,
                     setting.shard.count > 1 ? " · shard " + setting.shard.text() : "", chosen,
                     isConformant(report) ? "good" : "bad", verdictOf(report));
}

std::string card(const std::string& number, const std::string& what, bool bad = false) {
  return fmt::format("<div class=\"card{}\"><b>{}</b><span>{}</span></div>\n", bad ? " bad" : "",
                     number, what);
}

std::string cards(const Report& report, const Tally& all) {
  const Native native = nativeOf(report.results);
  std::string out = "<div class=\"cards\">\n";
  out += card(grouped(all[Outcome::passed]), fmt::format("of {} cases passed", grouped(all.total)));
  out += card(grouped(all[Outcome::failed]), "failed", all[Outcome::failed] > 0);
  if (native.rows)
    out += card(percent(native.rowShare),
                fmt::format("native by row, {} of {} whole", grouped(native.wholeRows),
                            grouped(native.rows)));
  if (native.work.nodes)
    out += card(percent(ratioOf(native.work.nativeNodes, native.work.nodes)), "native by node");
  if (native.work.macs)
    out += card(percent(ratioOf(native.work.nativeMacs, native.work.macs)), "native by MAC");
  return out + card(timeOf(report.wallMilliseconds), "wall time") + "</div>\n";
}

std::string tiers(const Report& report, const Tally& all) {
  std::string rows;
  const auto add = [&](const std::string& name, const Tally& tally, bool sum) {
    rows += fmt::format("<tr{}><td><b>{}</b></td><td class=\"wide\">{}</td>"
                        "<td class=\"n\" data-k=\"passed\">{} / {}</td>",
                        sum ? " class=\"sum\"" : "", markupEscaped(name), bar(tally),
                        grouped(tally[Outcome::passed]), grouped(tally.total));
    for (size_t i = 1; i < kOutcomes.size(); ++i)
      rows += numberCell(outcomeName(kOutcomes[i].first), tally[kOutcomes[i].first], i == 1);
    rows +=
        fmt::format("<td class=\"n\" data-k=\"time\">{}</td></tr>\n", timeOf(tally.milliseconds));
  };
  const Tallies byTier = tallyByTier(report.results);
  for (const auto& [tier, tally] : byTier) add(tier, tally, false);
  if (byTier.size() > 1) add("all", all, true);
  std::string body = table({"tier", "", "#passed", "#failed", "#xfail", "#mistrusted", "#emulated",
                            "#unsupported", "#time of cases"},
                           rows) +
                     "<ul class=\"legend\">";
  for (const auto& [outcome, meaning] : kOutcomes)
    if (all[outcome])
      body += fmt::format("<li><i class=\"{0}\"></i>{0}: <span class=\"soft\">{1}</span></li>",
                          outcomeName(outcome), meaning);
  body += "</ul>\n";
  for (const auto& [tier, why] : report.absent)
    body += fmt::format("<p class=\"soft\">The tier {} did not run: {}</p>\n", markupEscaped(tier),
                        markupEscaped(why));
  return section("Results by tier", "", body);
}

std::string problems(const Report& report) {
  std::string items;
  for (const std::string& problem : problemsOf(report))
    items += "<li>" + markupEscaped(problem) + "</li>\n";
  return items.empty()
             ? ""
             : section("Problems of the run", "", "<ul class=\"problems\">" + items + "</ul>\n");
}

std::string failures(const Report& report, uint64_t failed) {
  if (failed == 0) return section("Failures", "", "<p class=\"soft\">None.</p>\n");
  struct Group {
    std::string row, firstReason, items;
    size_t count = 0;
  };
  std::vector<Group> groups;
  size_t shown = 0;
  for (const CaseResult& result : report.results) {
    if (result.outcome != Outcome::failed || shown == kFailuresShown) continue;
    ++shown;
    const std::string_view full = rowOf(result.name),
                           row = full == result.name ? tierOf(result.name) : full;
    if (groups.empty() || groups.back().row != row)
      groups.push_back(
          {std::string(row), result.reason.substr(0, result.reason.find('\n')), "", 0});
    ++groups.back().count;
    groups.back().items +=
        fmt::format("<li>{}<p class=\"reason\">{}</p><pre>{}</pre></li>\n", code(result.name),
                    markupEscaped(result.reason), markupEscaped(rerunCommand(report, result.name)));
  }
  std::string body;
  for (const Group& group : groups) {
    // What fits on a screen is open; else the rows are an overview.
    const bool open =
        failed <= kFailuresOpen || (&group == &groups[0] && group.count <= kFailuresOpen);
    body += fmt::format(
        "<details{}><summary><span class=\"what\">{}<span class=\"first\">{}</span></span>"
        "<span class=\"count\">{}</span></summary>\n<ul class=\"failures\">{}</ul></details>\n",
        open ? " open=\"open\"" : "", code(group.row), markupEscaped(group.firstReason),
        grouped(group.count), group.items);
  }
  if (failed > shown)
    body += fmt::format("<p class=\"soft\">and {} more, in the JSON report</p>\n",
                        grouped(failed - shown));
  return section("Failures", fmt::format("{}, each with the line that reruns it", grouped(failed)),
                 body);
}

std::string waivers(const Report& report) {
  if (report.waivers.empty()) return "";
  std::string rows;
  for (const Waiver& waiver : report.waivers) {
    const auto count = std::ranges::count_if(report.results, [&](const CaseResult& result) {
      return matchesQuery(result.name, waiver.cases);
    });
    rows += "<tr>" + textCell("list", markupEscaped(waiver.list)) +
            textCell("cases", code(waiver.cases)) +
            textCell("reason", markupEscaped(waiver.reason)) +
            (waiver.owner.empty() ? "<td class=\"zero\"></td><td class=\"zero\"></td>"
                                  : textCell("owner", markupEscaped(waiver.owner)) +
                                        textCell("until suite", markupEscaped(waiver.expires))) +
            numberCell("cases here", static_cast<uint64_t>(count)) + "</tr>\n";
  }
  return section("Waivers", "of the vendor, with reasons",
                 table({"list", "cases", "reason", "owner", "until suite", "#cases here"}, rows));
}

/// Why cases are unsupported, the most frequent reason first.
std::string refusals(const Report& report) {
  std::map<std::string, std::pair<uint64_t, std::string>> reasons; ///< how many, and the first case
  for (const CaseResult& result : report.results) {
    if (result.outcome != Outcome::unsupported) continue;
    auto& [count, first] = reasons[result.reason.substr(0, result.reason.find('\n'))];
    if (count++ == 0) first = result.name;
  }
  if (reasons.empty()) return "";
  std::vector<std::pair<std::string, std::pair<uint64_t, std::string>>> sorted(reasons.begin(),
                                                                               reasons.end());
  std::ranges::stable_sort(
      sorted, [](const auto& a, const auto& b) { return a.second.first > b.second.first; });
  std::string rows;
  for (size_t i = 0; i < std::min(sorted.size(), kReasonsShown); ++i)
    rows += "<tr>" + numberCell("cases", sorted[i].second.first) +
            textCell("reason",
                     sorted[i].first.empty() ? "not claimed" : markupEscaped(sorted[i].first)) +
            textCell("for example", code(sorted[i].second.second)) + "</tr>\n";
  return folded("Why cases are unsupported",
                fmt::format("{} reasons{}", grouped(sorted.size()),
                            sorted.size() > kReasonsShown ? ", the most frequent here" : ""),
                table({"#cases", "reason", "for example"}, rows));
}

std::string rows(const Report& report) {
  std::string body;
  const Tallies byRow = tallyByRow(report.results);
  for (const auto& [row, tally] : byRow)
    body += fmt::format("<tr><td>{}</td><td class=\"wide\">{}</td><td class=\"n\" "
                        "data-k=\"passed\">{} / {}</td>{}</tr>\n",
                        code(row), bar(tally), grouped(tally[Outcome::passed]),
                        grouped(tally.total), numberCell("failed", tally[Outcome::failed], true));
  if (body.empty()) return "";
  return folded("Results by row", grouped(byRow.size()) + " rows",
                table({"row", "", "#passed", "#failed"}, body));
}

/// Networks: what of them is native, and what went where.
std::string networks(const Report& report) {
  std::string body;
  uint64_t count = 0, failed = 0;
  for (const CaseResult& result : report.results) {
    if (result.placement.empty()) continue;
    ++count, failed += result.outcome == Outcome::failed;
    std::string lines;
    for (const std::string& line : result.placement) lines += markupEscaped(line) + "\n";
    body +=
        fmt::format("<details><summary><span class=\"what\">{}<span class=\"first\">native: {} of "
                    "{} nodes, {} of "
                    "MACs</span></span>"
                    "<span class=\"soft\">{}</span></summary><pre>{}</pre></details>\n",
                    code(result.name), grouped(result.work.nativeNodes), grouped(result.work.nodes),
                    percent(ratioOf(result.work.nativeMacs, result.work.macs)),
                    outcomeName(result.outcome), lines);
  }
  if (body.empty()) return "";
  return folded("Networks",
                fmt::format("{}, {} failed: what went where", grouped(count), grouped(failed)),
                body);
}

std::string slowest(const Report& report) {
  std::vector<size_t> order(report.results.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const size_t count = std::min(order.size(), kSlowestShown);
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](size_t a, size_t b) {
                      return report.results[a].milliseconds > report.results[b].milliseconds;
                    });
  std::string body;
  for (size_t i = 0; i < count; ++i) {
    const CaseResult& result = report.results[order[i]];
    body += fmt::format(
        "<tr><td class=\"n\" data-k=\"time\">{}</td><td>{}</td><td class=\"soft\">{}</td></tr>\n",
        timeOf(result.milliseconds), code(result.name), outcomeName(result.outcome));
  }
  return folded("Slowest cases", fmt::format("the first {}", count),
                table({"#time", "case", "outcome"}, body));
}

std::string facts(const Report& report) {
  std::string list;
  const auto add = [&](const char* name, const std::string& markup) {
    if (!markup.empty()) list += fmt::format("<dt>{}</dt><dd>{}</dd>\n", name, markup);
  };
  const Candidate& candidate = report.candidate;
  add("plugin", markupEscaped(candidate.description));
  add("file", candidate.file.empty() ? "" : code(candidate.file));
  add("SHA-256 of it", candidate.sha256.empty() ? "" : code(candidate.sha256));
  add("ABI of its table", fmt::format("{}.{}", candidate.abiMajor, candidate.abiMinor));
  add("device", markupEscaped(candidate.device));
  for (const auto& [name, value] : candidate.options) add("option", code(name + "=" + value));
  for (const std::string& row : candidate.idleRows) add("never answers", markupEscaped(row));
  add("suite", markupEscaped(report.suiteVersion));
  add("hash of the corpus", code(report.corpusHash));
  add("Candela", markupEscaped(report.candelaVersion));
  add("command", code(runCommand(report)));
  return section("What was judged, and by what", "", "<dl>\n" + list + "</dl>\n");
}

} // namespace

std::string htmlPage(const Report& report) {
  const Tally all = tallyOf(report.results);
  return fmt::format(
             "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
             "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"/>\n"
             "<title>{} {}: Candela conformance</title>\n<style>{}</style></head>\n<body><main>\n",
             markupEscaped(report.candidate.name), markupEscaped(report.candidate.version),
             kHtmlStyle) +
         header(report) + cards(report, all) + problems(report) + tiers(report, all) +
         failures(report, all[Outcome::failed]) + waivers(report) + networks(report) +
         refusals(report) + rows(report) + slowest(report) + facts(report) +
         "</main></body></html>\n";
}

} // namespace candela::conformance::report
