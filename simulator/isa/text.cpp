#include "simulator/isa/text.h"

#include <fmt/ranges.h>

#include "simulator/error.h"

namespace candela::npu {

Result<std::vector<std::string>> wordsOf(std::string_view line) {
  std::vector<std::string> words;
  size_t at = 0;
  while (at < line.size()) {
    const char c = line[at];
    if (c == ' ' || c == '\t' || c == '\r' || c == ',') {
      ++at;
      continue;
    }
    if (c == ';') break;
    std::string word;
    if (c == '"') {
      for (++at; at < line.size() && line[at] != '"'; ++at) {
        if (line[at] == '\\' && at + 1 < line.size()) {
          ++at;
          word += line[at] == 'n' ? '\n' : line[at];
        } else {
          word += line[at];
        }
      }
      if (at == line.size()) return error("a quote has no end");
      ++at;
    } else {
      while (at < line.size() &&
             std::string_view(" \t\r,;\"").find(line[at]) == std::string_view::npos)
        word += line[at++];
    }
    words.push_back(std::move(word));
  }
  return words;
}

std::string quotedWord(const std::string& name) {
  if (!name.empty() && name.find_first_of(" \t\r\n,;\"\\") == name.npos) return name;
  std::string text = "\"";
  for (const char c : name) {
    if (c == '"' || c == '\\') text += '\\';
    if (c == '\n')
      text += "\\n";
    else
      text += c;
  }
  return text + '"';
}

namespace {

constexpr int kNoDigit = 99;

int digitOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : kNoDigit;
}

/// What stands before the number of a field; 0: nothing.
char letterOf(const FieldInfo& field) {
  if (field.kind == FieldKind::kIndex) return 'x';
  return field.kind == FieldKind::kDescriptor || field.name == "d" ? 'd' : '\0';
}

} // namespace

std::optional<int64_t> numberOf(std::string_view text) {
  const bool negative = !text.empty() && text[0] == '-';
  if (negative) text.remove_prefix(1);
  const bool hex = text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
  if (hex) text.remove_prefix(2);
  if (text.empty()) return {};
  const uint64_t base = hex ? 16 : 10;
  uint64_t value = 0;
  for (const char c : text) {
    const int digit = digitOf(c);
    if (digit >= static_cast<int>(base)) return {};
    if (value > (~uint64_t{0} - static_cast<uint64_t>(digit)) / base) return {};
    value = value * base + static_cast<uint64_t>(digit);
  }
  if (!hex && !negative && value > static_cast<uint64_t>(INT64_MAX)) return {};
  if (negative && value > uint64_t{1} << 63) return {};
  return static_cast<int64_t>(negative ? 0 - value : value);
}

Result<int64_t> fieldValueOf(const FieldInfo& field, std::string_view text) {
  if (const auto number = numberOf(text)) return *number;
  if (field.kind == FieldKind::kEnum) {
    std::vector<std::string_view> names;
    for (const EnumMember& member : kEnums[field.of].members) {
      if (member.name == text) return int64_t{member.value};
      names.push_back(member.name);
    }
    return error("{}: '{}' is none of {}", field.name, text, fmt::join(names, ", "));
  }
  const char letter = letterOf(field);
  if (letter && text.size() > 1 && text[0] == letter)
    if (const auto number = numberOf(text.substr(1))) return *number;
  if (field.kind == FieldKind::kMask) { // names of engines
    int64_t mask = 0;
    while (!text.empty()) {
      const std::string_view name = text.substr(0, text.find('|'));
      int engine = 0;
      while (engine < kEngineCount && engineName(engine) != name) ++engine;
      if (engine == kEngineCount) return error("{}: '{}' is no engine", field.name, name);
      mask |= int64_t{1} << engine;
      text.remove_prefix(std::min(text.size(), name.size() + 1));
    }
    return mask;
  }
  return error("{}: '{}' is no number", field.name, text);
}

std::string fieldText(const FieldInfo& field, int64_t value) {
  switch (field.kind) {
  case FieldKind::kEnum: return std::string(memberName(kEnums[field.of], value));
  case FieldKind::kIndex: return fmt::format("x{}", value);
  case FieldKind::kDescriptor: return fmt::format("d{}", value);
  case FieldKind::kHex:
  case FieldKind::kScratchpad:
  case FieldKind::kFar: return fmt::format("{:#x}", static_cast<uint64_t>(value));
  case FieldKind::kMask: {
    std::vector<std::string_view> names;
    for (int engine = 0; engine < kEngineCount; ++engine)
      if (value >> engine & 1) names.push_back(engineName(engine));
    return names.empty() ? "0" : fmt::format("{}", fmt::join(names, "|"));
  }
  default: return fmt::format("{}", value);
  }
}

} // namespace candela::npu
