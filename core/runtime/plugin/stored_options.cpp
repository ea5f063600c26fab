#include <algorithm>
#include <cstdlib>

#include "core/runtime/plugin/plugin.h"

namespace candela::runtime::plugin {
namespace {

/// A word: no path, no hidden file, no option of a command.
bool isStoredText(std::string_view text) {
  constexpr std::string_view kPlain = " ()+,-.:=@_";
  const auto isPlain = [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           kPlain.find(c) != kPlain.npos;
  };
  return text.empty() || (std::ranges::all_of(text, isPlain) && text[0] != '.' && text[0] != '-');
}

/// Whoever runs the program says that bundles may name files.
bool bundlesNameFiles() {
  const char* said = secure_getenv("CANDELA_BUNDLE_FILES");
  return said && std::string_view(said) == "1";
}

} // namespace

Status Plugin::checkStoredOptions(const Options& options) const {
  for (const cdl_option_schema_t& option : this->options()) {
    const auto given = options.find(option.name);
    const bool isText = !option.values || std::string_view(option.values) == "string";
    if (given == options.end() || !isText || isStoredText(given->second) || bundlesNameFiles())
      continue;
    return failure(
        Code::refused,
        "{}: option {}={} of the bundle may name a file, which the backend would read or write; "
        "CANDELA_BUNDLE_FILES=1 allows it, for bundles whose maker you trust",
        name(), option.name, given->second);
  }
  return Status::ok();
}

} // namespace candela::runtime::plugin
