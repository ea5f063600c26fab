#pragma once

#include <charconv>
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
