#pragma once

#include <algorithm>
#include <string>

namespace candela::tool {

inline constexpr double kLetter = 6.1; ///< pixels of a letter of a figure

/// As much of the text as has room, in pixels; nothing where that says nothing.
inline std::string shortened(const std::string& text, double room) {
  const auto letters = static_cast<size_t>(std::max(room / kLetter, 0.0));
  if (text.size() <= letters) return text;
  return letters < 5 ? "" : text.substr(0, letters - 1) + "…";
}

} // namespace candela::tool
