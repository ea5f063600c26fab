#include "core/compiler/import/stablehlo/scanner.h"

#include <algorithm>

namespace candela::import::stablehlo {
namespace {

constexpr size_t kShownText = 24; // of what was found in place of what was expected

bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isWordPart(char c) { return isLetter(c) || isDigit(c) || c == '.' || c == '$'; }

int hexValue(char c) {
  if (isDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

} // namespace

void Scanner::advance() {
  if (text_[at_] == '\n') ++line_;
  ++at_;
}

void Scanner::skipSpace() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
      advance();
      continue;
    }
    if (!text_.substr(at_).starts_with("//")) return;
    skipLine();
  }
}

void Scanner::skipLine() {
  while (at_ < text_.size() && text_[at_] != '\n') ++at_;
}

char Scanner::peek() {
  skipSpace();
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool Scanner::isNext(std::string_view mark) {
  skipSpace();
  if (!text_.substr(at_).starts_with(mark)) return false;
  const size_t end = at_ + mark.size();
  return !isLetter(mark.back()) || end >= text_.size() || !isWordPart(text_[end]);
}

bool Scanner::accept(std::string_view mark) {
  if (!isNext(mark)) return false;
  at_ += mark.size();
  return true;
}

void Scanner::expect(std::string_view mark, const char* where) {
  if (!accept(mark)) fail(fmt::format("expected '{}' {}", mark, where));
}

std::string_view Scanner::word() {
  skipSpace();
  const size_t begin = at_;
  if (at_ >= text_.size() || !isLetter(text_[at_])) return {};
  while (at_ < text_.size() && isWordPart(text_[at_])) ++at_;
  return text_.substr(begin, at_ - begin);
}

std::string Scanner::name(const char* what) {
  if (at_ < text_.size() && text_[at_] == '"') return quoted();
  const size_t begin = at_;
  while (at_ < text_.size() && (isWordPart(text_[at_]) || text_[at_] == '-')) ++at_;
  if (at_ == begin) fail(fmt::format("expected {}", what));
  return std::string(text_.substr(begin, at_ - begin));
}

std::string_view Scanner::rawQuoted() {
  expect("\"", "before a text");
  const size_t begin = at_;
  while (at_ < text_.size() && text_[at_] != '"') {
    if (text_[at_] == '\\' && at_ + 1 < text_.size()) advance();
    advance();
  }
  const size_t end = at_;
  if (at_ >= text_.size()) fail("a text without its end");
  ++at_;
  return text_.substr(begin, end - begin);
}

std::string Scanner::quoted() {
  const std::string_view raw = rawQuoted();
  std::string text;
  for (size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\' || i + 1 >= raw.size()) {
      text += raw[i];
      continue;
    }
    const bool isHex = i + 2 < raw.size() && hexValue(raw[i + 1]) >= 0 && hexValue(raw[i + 2]) >= 0;
    if (isHex) {
      text += static_cast<char>(hexValue(raw[i + 1]) * 16 + hexValue(raw[i + 2]));
      i += 2;
      continue;
    }
    ++i;
    const bool isNewline = raw[i] == 'n';
    text += isNewline ? '\n' : raw[i];
  }
  return text;
}

std::string_view Scanner::balanced(char open, char close) {
  const size_t begin = at_;
  int64_t depth = 1;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '"') {
      rawQuoted();
      continue;
    }
    if (text_.substr(at_).starts_with("->")) {
      at_ += 2;
      continue;
    }
    if (c == open) ++depth;
    if (c == close && --depth == 0) {
      const std::string_view inside = text_.substr(begin, at_ - begin);
      ++at_;
      return inside;
    }
    advance();
  }
  fail(fmt::format("'{}' without its '{}'", open, close));
}

std::string_view Scanner::number() {
  skipSpace();
  const size_t begin = at_;
  if (at_ < text_.size() && (text_[at_] == '-' || text_[at_] == '+')) ++at_;
  const bool isHex = text_.substr(at_).starts_with("0x");
  if (isHex) at_ += 2;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    const bool isSign =
        !isHex && (c == '-' || c == '+') && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E');
    const bool isExponent = !isHex && (c == 'e' || c == 'E' || c == '.');
    if (!isDigit(c) && !(isHex && hexValue(c) >= 0) && !isExponent && !isSign) break;
    ++at_;
  }
  return text_.substr(begin, at_ - begin);
}

void Scanner::skipLocation() {
  if (!accept("loc")) return;
  expect("(", "behind loc");
  balanced('(', ')');
}

void Scanner::fail(const std::string& what) {
  skipSpace();
  std::string_view rest = text_.substr(at_);
  rest = rest.substr(0, std::min(rest.find('\n'), kShownText));
  std::string found;
  for (const char c : rest) found += c >= 0x20 && c < 0x7f ? c : '?';
  if (found.empty()) reject("line {}: {}, found the end", line_, what);
  reject("line {}: {}, found '{}'", line_, what, found);
}

} // namespace candela::import::stablehlo
