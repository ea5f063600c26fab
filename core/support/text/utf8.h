#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

/// Needs nothing else, so that plugins of this project read names as the tool does.
namespace candela::text {

/// A character of UTF-8.
struct Character {
  size_t bytes = 0; ///< 0: the text does not begin with one
  uint32_t value = 0;
};

/// How many bytes a character has that begins with this one; 0 where none does.
inline size_t characterBytes(unsigned char first) {
  if (first < 0x80) return 1;
  if (first < 0xc2) return 0; // goes on with a character, or begins one that a shorter form has
  if (first < 0xe0) return 2;
  if (first < 0xf0) return 3;
  return first < 0xf5 ? 4 : 0;
}

/// The character that the text begins with: in its shortest form, no surrogate, at most U+10FFFF.
inline Character characterAt(std::string_view text) {
  if (text.empty()) return {};
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const size_t bytes = characterBytes(byte(0));
  if (bytes == 0 || text.size() < bytes) return {};
  if (bytes == 1) return {1, byte(0)};
  uint32_t value = byte(0) & (0x7fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3fu);
  }
  const bool isTooLong = (bytes == 3 && value < 0x800) || (bytes == 4 && value < 0x10000);
  const bool isSurrogate = value >= 0xd800 && value < 0xe000;
  if (isTooLong || isSurrogate || value > 0x10ffff) return {};
  return {bytes, value};
}

} // namespace candela::text
