#include "core/support/text/shown.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/support/text/scan.h"

namespace candela::text {
namespace {

struct Range {
  uint32_t first, last;
};
constexpr Range kHidden[] = {
    {0x00, 0x1f},     {0x7f, 0x9f},     {0x61c, 0x61c},   {0x200b, 0x200f},   {0x2028, 0x202e},
    {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f},
};

std::string shown(std::string_view text, bool keepsLines) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto [bytes, value] = characterAt(text);
    const auto byte = static_cast<unsigned char>(text[0]);
    if (!bytes || (isHidden(value) && value < 0x80)) {
      if (byte == '\n')
        out += keepsLines ? "\n" : "\\n";
      else if (byte == '\t')
        out += keepsLines ? "\t" : "\\t";
      else
        out += fmt::format("\\x{:02x}", byte);
    } else if (isHidden(value)) {
      out += value > 0xffff ? fmt::format("\\U{:08x}", value) : fmt::format("\\u{:04x}", value);
    } else {
      out += text.substr(0, bytes);
    }
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return out;
}

bool isNumber(std::string_view text) {
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789.eE+-") == text.npos &&
         parseNumber<double>(text);
}

bool beginsFormula(std::string_view text) {
  constexpr uint32_t kBegins[] = {'=',  '+',    '-',    '@',    '\t',  '\r',
                                  '\n', 0xff1d, 0xff0b, 0xff0d, 0xff20}; // the last ones wide
  return std::ranges::count(kBegins, characterAt(text).value) > 0 && !isNumber(text);
}

} // namespace

bool isHidden(uint32_t character) {
  return std::ranges::any_of(kHidden,
                             [&](Range r) { return character >= r.first && character <= r.last; });
}

std::string shownLine(std::string_view text) { return shown(text, false); }
std::string shownText(std::string_view text) { return shown(text, true); }

std::string shownJson(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  while (!json.empty()) {
    const auto [bytes, value] = characterAt(json);
    // Controls below a space stand between strings alone: the writer escapes them within.
    if (!bytes || value < 0x20 || !isHidden(value))
      out += json.substr(0, std::max<size_t>(bytes, 1));
    else if (value > 0xffff)
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + ((value - 0x10000) >> 10),
                         0xdc00 + (value & 0x3ff));
    else
      out += fmt::format("\\u{:04x}", value);
    json.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return out;
}

std::string plainCell(std::string_view text) {
  return (beginsFormula(text) ? "'" : "") + shownLine(text);
}

std::string csvCell(std::string_view text) {
  const std::string plain = plainCell(text);
  if (plain.find_first_of(",;\"") == plain.npos) return plain;
  std::string quoted = "\"";
  for (const char c : plain) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

} // namespace candela::text
