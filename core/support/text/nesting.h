#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

/// How deep texts of others are nested, before a parser makes a tree of them: what walks or frees a
/// tree calls itself for each level. Nothing here needs anything else of the core.
namespace candela::text {

inline constexpr size_t kMostLevels = 100; ///< far above what any file of ours has

/// The deepest of the lists and objects in a text of JSON.
inline size_t jsonLevels(std::string_view text) {
  size_t level = 0, most = 0;
  bool isString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (isString && c == '\\') {
      ++i;
    } else if (c == '"') {
      isString = !isString;
    } else if (!isString && (c == '[' || c == '{')) {
      most = std::max(most, ++level);
    } else if (!isString && (c == ']' || c == '}') && level > 0) {
      --level;
    }
  }
  return most;
}

/// Behind the string of TOML that begins at `start`: of one quote or of three, basic ones with
/// escapes.
inline size_t endOfTomlString(std::string_view text, size_t start) {
  const char quote = text[start];
  const bool isLong = text.substr(start, 3) == std::string_view(quote == '"' ? "\"\"\"" : "'''");
  const std::string_view end = text.substr(start, isLong ? 3 : 1);
  for (size_t i = start + end.size(); i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\')
      ++i;
    else if (text.substr(i, end.size()) == end)
      return i + end.size();
    else if (!isLong && text[i] == '\n')
      return i; // malformed, which the parser says
  }
  return text.size();
}

/// The most names that one key of a text of TOML has, each of which makes a table: a.b.c has three.
/// Its parser bounds what else nests.
inline size_t tomlLevels(std::string_view text) {
  size_t names = 1, most = 1;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      i = endOfTomlString(text, i);
      continue;
    }
    if (c == '#') {
      i = std::min(text.find('\n', i), text.size());
      continue;
    }
    if (c == '.') most = std::max(most, ++names);
    if (std::string_view("=,[]{}\n").find(c) != std::string_view::npos) names = 1;
    ++i;
  }
  return most;
}

} // namespace candela::text
