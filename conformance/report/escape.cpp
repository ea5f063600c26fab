#include "conformance/report/escape.h"

#include "core/support/text/shown.h"

namespace candela::conformance::report {

std::string markupEscaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    size_t length = 1;
    switch (text[0]) {
    case '<': out += "&lt;"; break;
    case '>': out += "&gt;"; break;
    case '&': out += "&amp;"; break;
    case '"': out += "&quot;"; break;
    case '\'': out += "&#39;"; break;
    case '\n': out += "&#10;"; break;
    case '\t': out += "&#9;"; break;
    default:
      const auto [bytes, value] = text::characterAt(text);
      // of XML
      const bool isNone = !bytes || value < 0x20 || value == 0x7f || (value & 0xfffe) == 0xfffe;
      length = bytes ? bytes : 1;
      out += isNone ? "?" : text::shownLine(text.substr(0, length));
    }
    text.remove_prefix(length);
  }
  return out;
}

} // namespace candela::conformance::report
