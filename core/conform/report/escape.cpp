#include "core/conform/report/escape.h"

#include <cstdint>

namespace candela::conform {
namespace {

/// Bytes of the UTF-8 character that the text begins with; 0 where it is none, or one that XML cannot hold.
size_t characterLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  const size_t length = first < 0x80                    ? 1
                        : first >= 0xF0 && first < 0xF5 ? 4
                        : first >= 0xE0                 ? 3
                        : first >= 0xC2                 ? 2
                                                        : 0;
  if (first < 0x80) return first >= 0x20 && first != 0x7F ? 1 : 0;
  if (length == 0 || first >= 0xF5 || text.size() < length) return 0;
  uint32_t value = first & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    value = value << 6 | (byte(i) & 0x3Fu);
  }
  const bool tooLong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  const bool surrogate = value >= 0xD800 && value<0xE000, none = value> 0x10FFFF || (value & 0xFFFE) == 0xFFFE;
  return tooLong || surrogate || none ? 0 : length;
}

} // namespace

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
      length = characterLength(text);
      out += length ? text.substr(0, length) : "?";
      length = length ? length : 1;
    }
    text.remove_prefix(length);
  }
  return out;
}

} // namespace candela::conform
