#pragma once

#include <string_view>

namespace candela::text {

/// Whether the text may name a backend: [a-z0-9_]+, at most 64. No such name is a path.
inline bool isBackendName(std::string_view name) {
  constexpr size_t kMost = 64;
  return !name.empty() && name.size() <= kMost &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos;
}

} // namespace candela::text
