#include "core/support/text/lexer.h"

#include <algorithm>

#include "core/support/text/scan.h"
#include "core/support/text/shown.h"

namespace candela::text {
namespace {

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool isNamePart(char c) { return isLetter(c) || isDigit(c) || c == '.'; }
bool isHexDigit(char c) { return isDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

/// What stands behind a backslash in a string; \xHH is any byte.
struct Escape {
  char letter, meant;
};
constexpr Escape kEscapes[] = {{'n', '\n'}, {'t', '\t'}, {'"', '"'}, {'\\', '\\'}};

} // namespace

std::string Token::shown() const {
  switch (kind) {
  case TokenKind::end: return "end of file";
  case TokenKind::value: return fmt::format("'{}'", nameText('%', text));
  case TokenKind::symbol: return fmt::format("'{}'", nameText('@', text));
  case TokenKind::string: return quoteText(text);
  default: return fmt::format("'{}'", text);
  }
}

TokenStream::TokenStream(std::string_view source, std::string file, Diagnostics& diagnostics)
    : source_(source), file_(std::move(file)), diagnostics_(diagnostics) {}

void TokenStream::report(const Token& at, std::string message) {
  diagnostics_.error({file_, at.line, at.column}, std::move(message));
}

void TokenStream::stop(const Token& at, std::string message) {
  if (!failed_) report(at, std::move(message));
  failed_ = true;
  place_ = source_.size();
  ahead_.clear();
}

const Token& TokenStream::peek(size_t ahead) {
  while (ahead_.size() <= ahead) {
    Token token = next(); // may fail, which clears ahead_
    ahead_.push_back(std::move(token));
  }
  return ahead_[ahead];
}

Token TokenStream::take() {
  Token token = peek();
  ahead_.pop_front();
  return token;
}

bool TokenStream::at(std::string_view text) {
  const Token& token = peek();
  return token.is(TokenKind::punct, text) || token.is(TokenKind::identifier, text);
}

bool TokenStream::accept(std::string_view text) {
  if (!at(text)) return false;
  take();
  return true;
}

void TokenStream::expect(std::string_view text) {
  if (!accept(text)) fail(peek(), "expected '{}' but found {}", text, peek().shown());
}

Token TokenStream::expect(TokenKind kind, std::string_view what) {
  if (!at(kind)) fail(peek(), "expected {} but found {}", what, peek().shown());
  return take();
}

int64_t TokenStream::expectInt(std::string_view what, int64_t lowest, int64_t highest) {
  const Token token = expect(TokenKind::integer, what);
  const std::string_view digits = token.text;
  const auto number = digits.starts_with("0x") ? parseNumber<int64_t>(digits.substr(2), 16)
                                               : parseNumber<int64_t>(digits, 10);
  if (!number) fail(token, "{} '{}' does not fit 64 bits", what, token.text);
  if (*number < lowest || *number > highest)
    fail(token, "{} {} is not within {} .. {}", what, *number, lowest, highest);
  return *number;
}

Elem TokenStream::expectElem() {
  const Token token = expect(TokenKind::identifier, "an element type");
  const auto elem = parseElem(token.text);
  if (!elem) fail(token, "unknown element type '{}'", token.text);
  return *elem;
}

void TokenStream::advance() {
  if (current() == '\n') {
    ++line_;
    column_ = 1;
  } else {
    ++column_;
  }
  ++place_;
}

Token TokenStream::next() {
  while (place_ < source_.size()) {
    const char c = current();
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      advance();
    } else if (c == '/' && current(1) == '/') {
      while (place_ < source_.size() && current() != '\n') advance();
    } else {
      break;
    }
  }
  Token token{TokenKind::end, "", line_, column_};
  if (place_ >= source_.size()) return token;
  const char c = current();
  if (isLetter(c)) return name(TokenKind::identifier);
  if (isDigit(c) ||
      (c == '-' && (isDigit(current(1)) || source_.substr(place_).starts_with("-inf") ||
                    source_.substr(place_).starts_with("-nan"))))
    return number();
  if (c == '"') return quotedString();
  if ((c == '%' || c == '@') && (isLetter(current(1)) || current(1) == '"')) {
    advance();
    const TokenKind kind = c == '%' ? TokenKind::value : TokenKind::symbol;
    Token inner = current() == '"' ? quotedString() : name(kind);
    if (inner.kind == TokenKind::end) return inner;
    inner.kind = kind;
    inner.line = token.line;
    inner.column = token.column;
    return inner;
  }
  if (static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) > '~') {
    stop(token, fmt::format("unexpected character 0x{:02x}", static_cast<unsigned char>(c)));
    return token;
  }
  token.kind = TokenKind::punct;
  const bool two = c == '-' && current(1) == '>';
  token.text = std::string(source_.substr(place_, two ? 2 : 1));
  for (size_t i = 0; i < token.text.size(); ++i) advance();
  return token;
}

Token TokenStream::name(TokenKind kind) {
  Token token{kind, "", line_, column_};
  for (; isNamePart(current()); advance()) token.text += current();
  return token;
}

Token TokenStream::number() {
  Token token{TokenKind::integer, "", line_, column_};
  const auto eat = [&] {
    token.text += current();
    advance();
  };
  if (current() == '-') eat();
  if (isLetter(current())) { // -inf, -nan
    token.kind = TokenKind::real;
    for (int i = 0; i < 3; ++i) eat();
    return token;
  }
  if (token.text.empty() && current() == '0' && current(1) == 'x' && isHexDigit(current(2))) {
    eat();
    eat();
    while (isHexDigit(current())) eat();
    return token;
  }
  while (isDigit(current())) eat();
  if (current() == '.' && isDigit(current(1))) {
    token.kind = TokenKind::real;
    eat();
    while (isDigit(current())) eat();
  }
  const bool sign = current(1) == '-' || current(1) == '+';
  if ((current() == 'e' || current() == 'E') && isDigit(current(sign ? 2 : 1))) {
    token.kind = TokenKind::real;
    eat();
    if (sign) eat();
    while (isDigit(current())) eat();
  }
  return token;
}

Token TokenStream::quotedString() {
  Token token{TokenKind::string, "", line_, column_};
  const auto bad = [&](std::string message) {
    stop(token, std::move(message));
    return Token{TokenKind::end, "", token.line, token.column};
  };
  advance();
  while (current() != '"' || place_ >= source_.size()) {
    if (place_ >= source_.size() || current() == '\n') return bad("string has no closing quote");
    if (current() != '\\') {
      token.text += current();
      advance();
      continue;
    }
    advance();
    if (const auto escape = std::ranges::find(kEscapes, current(), &Escape::letter);
        escape != std::end(kEscapes)) {
      token.text += escape->meant;
    } else if (current() == 'x' && isHexDigit(current(1)) && isHexDigit(current(2))) {
      token.text += static_cast<char>(*parseNumber<uint8_t>(source_.substr(place_ + 1, 2), 16));
      advance(), advance();
    } else {
      return bad("unknown escape in string");
    }
    advance();
  }
  advance();
  return token;
}

std::string quoteText(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const auto [bytes, value] = characterAt(text);
    const std::string_view piece = text.substr(0, std::max<size_t>(bytes, 1));
    text.remove_prefix(piece.size());
    if (const auto escape = std::ranges::find(kEscapes, piece[0], &Escape::meant);
        escape != std::end(kEscapes)) {
      out += '\\';
      out += escape->letter;
    } else if (!bytes || isHidden(value)) {
      for (const char c : piece) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += piece;
    }
  }
  return out + '"';
}

std::string nameText(char sigil, std::string_view name) {
  bool plain = !name.empty() && isLetter(name[0]);
  for (const char c : name) plain = plain && isNamePart(c);
  return sigil + (plain ? std::string(name) : quoteText(name));
}

} // namespace candela::text
