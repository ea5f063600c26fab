#include "core/compiler/lowering/partition/pins.h"

#include <algorithm>

#include <fnmatch.h>

#include "core/compiler/graph/custom.h"
#include "core/support/text/scan.h"
#include "core/support/text/shown.h"

namespace candela::lowering::partition {

namespace {

constexpr std::string_view kOpPrefix = "op:";
constexpr std::string_view kBlank = " \t\r";

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlank);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::string_view withoutComment(std::string_view line) {
  for (size_t at = line.find('#'); at != line.npos; at = line.find('#', at + 1))
    if (at == 0 || kBlank.find(line[at - 1]) != kBlank.npos) return line.substr(0, at);
  return line;
}

Result<size_t> targetOf(std::string_view device, std::span<const std::string> devices) {
  const std::string name(device.ends_with(":0") ? device.substr(0, device.size() - 2) : device);
  if (name == "host" || name == "soft") return devices.size() - 1;
  const auto at = std::ranges::find(devices, name);
  if (at == devices.end())
    return badArgument("'{}' is no device here; there are {}", text::shownLine(device),
                       fmt::join(devices, ", "));
  return static_cast<size_t>(at - devices.begin());
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

} // namespace

bool Pin::matches(const graph::Node& node) const {
  if (pattern.starts_with(kOpPrefix))
    return fnmatch(lower(pattern.substr(kOpPrefix.size())).c_str(),
                   lower(graph::shownOp(node)).c_str(), 0) == 0;
  const auto isMeant = [&](const std::string& name) {
    return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  };
  return isMeant(node.userName()) || std::ranges::any_of(node.provenance, isMeant);
}

Result<std::vector<Pin>> parsePins(std::string_view text, const std::string& file,
                                   std::span<const std::string> devices) {
  std::vector<Pin> pins;
  size_t number = 0;
  for (const std::string& whole : text::split(text, '\n')) {
    const std::string where = fmt::format("{}:{}", file, ++number);
    const std::string_view line = trimmed(withoutComment(whole));
    if (line.empty()) continue;
    // A name may hold '=', a device does not.
    const size_t equals = line.rfind('=');
    const std::string_view pattern = trimmed(line.substr(0, equals));
    const std::string_view device =
        equals == line.npos ? std::string_view() : trimmed(line.substr(equals + 1));
    if (pattern.empty() || device.empty())
      return badArgument("{}: '{}': expected PATTERN = DEVICE", where, text::shownLine(line));
    const Result<size_t> target = targetOf(device, devices);
    if (!target) return target.status().context(where);
    pins.push_back({std::string(pattern), *target, std::string(device), where});
  }
  return pins;
}

} // namespace candela::lowering::partition
