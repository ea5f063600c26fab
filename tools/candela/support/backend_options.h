#pragma once

#include "core/runtime/plugin/plugin.h"
#include "tools/candela/support/model.h"

namespace candela::tool {

/// Whether an option of BACKEND.KEY=VALUE is a device's: BACKEND is its plugin, or the device
/// alone.
inline bool isFor(std::string_view backend, const std::string& plugin, const std::string& id) {
  return backend == plugin || backend == id;
}

/// What the texts of --option, KEY=VALUE or BACKEND.KEY=VALUE, say to one device.
inline runtime::plugin::Options optionsOf(const std::vector<std::string>& texts,
                                          const runtime::plugin::FoundDevice& device) {
  runtime::plugin::Options options;
  for (const std::string& text : texts) {
    const Binding option = parseBinding("--option", text);
    const size_t dot = option.name.find('.');
    if (dot == std::string::npos ||
        isFor(option.name.substr(0, dot), device.plugin->name(), device.id()))
      options[option.name.substr(dot + 1)] = option.value;
  }
  return options;
}

/// Each BACKEND.KEY=VALUE is for one of the devices. Throws Failure.
inline void
checkBackendOptions(const std::vector<std::string>& texts,
                    const std::vector<std::shared_ptr<runtime::plugin::Device>>& devices) {
  for (const std::string& text : texts) {
    const size_t dot = parseBinding("--option", text).name.find('.');
    if (dot == std::string::npos) continue;
    if (std::ranges::none_of(devices, [&](const auto& each) {
          return isFor(text.substr(0, dot), each->plugin().name(), each->id());
        }))
      fail(kBadInput, "--option {}: no backend of --backend is named '{}'", text,
           text.substr(0, dot));
  }
}

} // namespace candela::tool
