#include "tools/candela/support/template.h"

namespace candela::tool {

std::string filledTemplate(std::string_view text,
                           const std::map<std::string_view, std::string>& values) {
  std::string filled;
  for (size_t at = text.find('@'); at != std::string_view::npos; at = text.find('@')) {
    filled += text.substr(0, at);
    text.remove_prefix(at);
    const size_t end = text.find('@', 1);
    const auto value = values.find(text.substr(1, end - 1));
    if (end == std::string_view::npos || value == values.end()) {
      filled += '@';
      text.remove_prefix(1);
    } else {
      filled += value->second;
      text.remove_prefix(end + 1);
    }
  }
  return filled.append(text);
}

} // namespace candela::tool
