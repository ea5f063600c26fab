#include "core/support/text/pairs.h"

#include <algorithm>
#include <optional>

namespace candela::text {

namespace {

/// What "*" of the pattern stands for in the name; nullopt: the name is another one.
std::optional<std::string_view> matched(std::string_view pattern, std::string_view name) {
  const size_t star = pattern.find('*');
  const std::string_view head = pattern.substr(0, star);
  const std::string_view tail = pattern.substr(star + 1);
  if (name.size() < head.size() + tail.size()) return std::nullopt;
  if (!name.starts_with(head) || !name.ends_with(tail)) return std::nullopt;
  return name.substr(head.size(), name.size() - head.size() - tail.size());
}

std::vector<NamePair> matchingPairs(std::string_view in, std::string_view out,
                                    std::span<const std::string> inputs,
                                    std::span<const std::string> outputs) {
  std::vector<NamePair> pairs;
  if (std::ranges::count(in, '*') != 1 || std::ranges::count(out, '*') != 1) return pairs;
  for (const std::string& input : inputs) {
    const auto same = matched(in, input);
    if (!same) continue;
    std::string output(out);
    output.replace(output.find('*'), 1, *same);
    if (std::ranges::find(outputs, output) != outputs.end()) pairs.emplace_back(input, output);
  }
  return pairs;
}

} // namespace

std::vector<NamePair> pairsOf(std::string_view text, std::span<const std::string> inputs,
                              std::span<const std::string> outputs) {
  const auto isIn = [](std::span<const std::string> names, std::string_view name) {
    return std::ranges::find(names, name) != names.end();
  };
  std::vector<NamePair> pairs;
  for (size_t at = text.find('='); at != std::string_view::npos; at = text.find('=', at + 1)) {
    const std::string_view in = text.substr(0, at);
    const std::string_view out = text.substr(at + 1);
    if (isIn(inputs, in) && isIn(outputs, out)) return {{std::string(in), std::string(out)}};
    if (pairs.empty()) pairs = matchingPairs(in, out, inputs, outputs);
  }
  return pairs;
}

} // namespace candela::text
