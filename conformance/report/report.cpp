#include "conformance/report/report.h"

#include <algorithm>

#include "conformance/report/tally.h"
#include "conformance/suite.h"
#include "core/support/text/shell.h"

namespace candela::conformance::report {
namespace {

using Outcome = CaseResult::Outcome;
using text::shellQuoted;

constexpr std::array<const char*, 3> kSizes = {"quick", "full", "nightly"};

std::string backendFlags(const Report& report) {
  std::string flags = " --backend " + shellQuoted(report.candidate.backend);
  for (const auto& [name, value] : report.candidate.options)
    flags += " --option " + shellQuoted(name + "=" + value);
  if (!report.setting.onnxData.empty())
    flags += " --onnx-data " + shellQuoted(report.setting.onnxData);
  if (report.setting.toPrimitives) flags += " --to-primitives";
  return flags;
}

} // namespace

const char* sizeName(Size size) { return kSizes[static_cast<size_t>(size)]; }

std::optional<Size> sizeNamed(std::string_view name) {
  const auto at = std::ranges::find(kSizes, name);
  if (at == kSizes.end()) return std::nullopt;
  return static_cast<Size>(at - kSizes.begin());
}

bool Report::isWhole() const {
  return setting.queries.empty() && setting.shard.count == 1 &&
         setting.tiers.size() + absent.size() == allTiers().size();
}

std::vector<std::string> problemsOf(const Report& report) {
  std::vector<std::string> problems = report.expectationProblems;
  // shares of parts say little
  if (!report.setting.queries.empty() || report.setting.shard.count > 1) return problems;
  for (const auto& [row, tally] : tallyByRow(report.results))
    if (const uint64_t mistrusted = tally[Outcome::mistrusted]; mistrusted * 20 > tally.total)
      problems.push_back(
          fmt::format("{}: {} of {} cases are mistrusted ({:.1f} %): at most 5 % may be", row,
                      mistrusted, tally.total, 100 * ratioOf(mistrusted, tally.total)));
  return problems;
}

bool isConformant(const Report& report) {
  return tallyOf(report.results)[Outcome::failed] == 0 && problemsOf(report).empty();
}

std::string runCommand(const Report& report) {
  const Setting& setting = report.setting;
  std::string command = "candela conform" + backendFlags(report);
  size_t all = 0;
  for (const Tier& tier : allTiers())
    all += std::ranges::none_of(report.absent,
                                [&](const auto& absent) { return absent.first == tier.name; });
  if (setting.tiers.size() != all)
    for (const std::string& tier : setting.tiers) command += " --tier " + tier;
  for (const std::string& query : setting.queries) command += " --cases " + shellQuoted(query);
  command += fmt::format(" --size {} --seed {}", sizeName(setting.size), setting.seed);
  if (setting.shard.count > 1) command += " --shard " + setting.shard.text();
  return command;
}

std::string rerunCommand(const Report& report, const std::string& address) {
  std::string command = "candela conform" + backendFlags(report);
  if (std::ranges::find(report.notInNightly, address) != report.notInNightly.end())
    command += fmt::format(" --size {}", sizeName(report.setting.size));
  if (report.setting.seed != Setting().seed)
    command += fmt::format(" --seed {}", report.setting.seed);
  return command + " --cases " + shellQuoted(address);
}

} // namespace candela::conformance::report
