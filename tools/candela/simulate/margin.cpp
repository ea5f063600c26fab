#include "tools/candela/simulate/margin.h"

#include <algorithm>

#include "core/support/json.h"
#include "tools/candela/simulate/simulation_files.h"

namespace candela::tool {
namespace {

std::string rangeText(const Json& margin) {
  const auto least = margin["least"].get<double>();
  const auto most = margin["most"].get<double>();
  const auto count = margin["runs"].get<uint64_t>();
  const auto against = margin["against"].get<std::string>();
  const std::string runs =
      count == 1 ? "in one measured run" : fmt::format("in {} measured runs", count);
  if (least == 0 && most == 0) return fmt::format("cycles were those of {} {}", against, runs);
  if (least == most)
    return fmt::format("cycles were {:+.1f} % off {} {}", 100 * least, against, runs);
  return fmt::format("cycles were {:+.1f} to {:+.1f} % off {} {}", 100 * least, 100 * most, against,
                     runs);
}

} // namespace

Json marginOf(const std::string& fidelity) {
  if (fidelity == "rtl") return {{"text", "cycles are those of the hardware description itself"}};
  const Json known = parseJson<Json>(kMargins);
  Json margin = known.at(fidelity);
  margin["text"] = rangeText(margin);
  const Json& published = known.at("published");
  if (published.contains(fidelity)) margin["published"] = published.at(fidelity);
  return margin;
}

std::string constantsText(const Json& provenance) {
  std::vector<std::pair<double, std::string>> shares;
  for (const auto& [tag, share] : provenance.items()) shares.emplace_back(share.get<double>(), tag);
  std::ranges::stable_sort(shares, std::greater<>(), [](const auto& each) { return each.first; });
  std::string text;
  for (const auto& [share, tag] : shares)
    text += fmt::format("{}{:.0f} % {}", text.empty() ? "constants: " : ", ", 100 * share, tag);
  return text;
}

} // namespace candela::tool
