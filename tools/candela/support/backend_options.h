#pragma once

#include "core/runtime/plugin/plugin.h"
#include "tools/candela/support/model.h"

namespace candela::tool {

/// What the texts of --option, KEY=VALUE or PLUGIN.KEY=VALUE, say to one plugin.
inline runtime::plugin::Options optionsOf(const std::vector<std::string>& texts,
                                          const std::string& plugin) {
  runtime::plugin::Options options;
  for (const std::string& text : texts) {
    const Binding option = parseBinding("--option", text);
    const size_t dot = option.name.find('.');
    if (dot == std::string::npos || option.name.substr(0, dot) == plugin)
      options[option.name.substr(dot + 1)] = option.value;
  }
  return options;
}

/// Each PLUGIN.KEY=VALUE is for one of the devices. Throws Failure.
inline void
checkBackendOptions(const std::vector<std::string>& texts,
                    const std::vector<std::shared_ptr<runtime::plugin::Device>>& devices) {
  for (const std::string& text : texts) {
    const size_t dot = parseBinding("--option", text).name.find('.');
    if (dot == std::string::npos) continue;
    if (std::ranges::none_of(devices, [&](const auto& each) {
          return each->plugin().name() == text.substr(0, dot);
        }))
      fail(kBadInput, "--option {}: no backend of --backend is named '{}'", text,
           text.substr(0, dot));
  }
}

} // namespace candela::tool
