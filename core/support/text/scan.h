#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace candela::text {

/// The number that the whole text is; nullopt when it is malformed, out of range or empty.
template <typename T>
std::optional<T> parseNumber(std::string_view text, [[maybe_unused]] int base = 10) {
  T value{};
  std::from_chars_result result;
  if constexpr (std::is_floating_point_v<T>)
    result = std::from_chars(text.data(), text.data() + text.size(), value);
  else
    result = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Bytes: "4096", "256K", "1M", "2G"; nullopt where it is none, or more than 64 bits hold.
inline std::optional<uint64_t> parseBytes(std::string_view text) {
  constexpr std::string_view kUnits = "KMG";
  const size_t unit = text.empty() ? kUnits.npos : kUnits.find(text.back());
  const bool hasUnit = unit != kUnits.npos;
  if (hasUnit) text.remove_suffix(1);
  const size_t shift = hasUnit ? 10 * (unit + 1) : 0;
  const std::optional<uint64_t> count = parseNumber<uint64_t>(text);
  if (!count || *count > UINT64_MAX >> shift) return std::nullopt;
  return *count << shift;
}

/// Whether the word is one of "one|two|three".
inline bool isOneOf(const std::string& word, const std::string& words) {
  return word.find('|') == word.npos && ("|" + words + "|").find("|" + word + "|") != words.npos;
}

/// What stands between the separators; one empty part for an empty text.
inline std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t start = 0, end; start <= text.size(); start = end + 1) {
    end = std::min(text.find(separator, start), text.size());
    parts.emplace_back(text.substr(start, end - start));
  }
  return parts;
}

} // namespace candela::text
