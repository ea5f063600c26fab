#pragma once

#include <string>
#include <string_view>

#include "core/support/text/scan.h"

namespace candela::text {

/// Whether the text may name a backend: [a-z0-9_]+, at most 64. No such name is a path.
inline bool isBackendName(std::string_view name) {
  constexpr size_t kMost = 64;
  return !name.empty() && name.size() <= kMost &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos;
}

/// One of a backend's devices, as people and files name it.
struct DeviceName {
  std::string backend; ///< a name, or what else stood before the number: the path of a plugin
  uint32_t index = 0;
};

/// "NAME" is the backend's first device, "NAME:N" its device N. A colon with anything else behind
/// it belongs to the name.
inline DeviceName parseDeviceName(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon != std::string_view::npos)
    if (const auto index = parseNumber<uint32_t>(text.substr(colon + 1)))
      return {std::string(text.substr(0, colon)), *index};
  return {std::string(text), 0};
}
/// The other way round: "NAME" for device 0.
inline std::string deviceNameText(const std::string& backend, uint32_t index) {
  return index == 0 ? backend : backend + ":" + std::to_string(index);
}

} // namespace candela::text
