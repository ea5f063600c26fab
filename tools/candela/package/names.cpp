#include "tools/candela/package/names.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace candela::tool {
namespace {

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isNameChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || isDigit(c) || c == '_';
}

// Of C99 and C++17, where the header is used in both.
constexpr std::array kWords = {
    "alignas",   "alignof", "and",      "asm",      "auto",     "bool",     "break",   "case",
    "catch",     "char",    "class",    "const",    "continue", "default",  "delete",  "do",
    "double",    "else",    "enum",     "explicit", "export",   "extern",   "false",   "float",
    "for",       "friend",  "goto",     "if",       "inline",   "int",      "long",    "mutable",
    "namespace", "new",     "noexcept", "not",      "nullptr",  "operator", "or",      "private",
    "protected", "public",  "register", "restrict", "return",   "short",    "signed",  "sizeof",
    "static",    "struct",  "switch",   "template", "this",     "throw",    "true",    "try",
    "typedef",   "typeid",  "typename", "union",    "unsigned", "using",    "virtual", "void",
    "volatile",  "while",   "xor"};

} // namespace

std::string nameInC(std::string_view name) {
  std::string made(name);
  for (char& c : made)
    if (!isNameChar(c)) c = '_';
  if (made.empty() || isDigit(made[0])) made.insert(0, "_");
  if (std::find(kWords.begin(), kWords.end(), made) != kWords.end()) made += '_';
  return made;
}

bool isNameInC(std::string_view name) { return nameInC(name) == name; }

std::string macroName(std::string_view name) {
  std::string made = nameInC(name);
  for (char& c : made)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return made;
}

std::string FieldNames::add(std::string_view name) {
  const std::string wanted = nameInC(name);
  std::string unique = wanted;
  for (int n = 2; !used_.insert(unique).second; ++n) unique = fmt::format("{}_{}", wanted, n);
  return unique;
}

std::string textInC(std::string_view text) {
  std::string made;
  for (const char c : text) {
    const bool isPlain = c >= ' ' && c <= '~' && c != '"' && c != '\\' && c != '*';
    made += isPlain ? c : '_';
  }
  return made;
}

} // namespace candela::tool
