#pragma once

#include <deque>

#include "core/support/diagnostic.h"
#include "core/support/elem.h"

/// What both IRs' text forms (.cdl) are made of.
namespace candela::text {

enum class TokenKind : uint8_t {
  end,
  identifier, ///< [A-Za-z_][A-Za-z0-9_.]*; inf and nan too
  integer,    ///< -?[0-9]+ or 0x[0-9a-fA-F]+
  real,       ///< with a '.' or an exponent, or -inf, -nan
  string,     ///< "...", escapes resolved
  value,      ///< %name or %"any name", without the %
  symbol,     ///< @name or @"any name", without the @
  punct,      ///< "->", else one character
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string text;
  int line = 1, column = 1;
  bool is(TokenKind k, std::string_view t) const { return kind == k && text == t; }
  /// As it stands in a message: 'text', or "end of file".
  std::string shown() const;
};

/// Thrown by what a TokenStream expects, below parseAll().
struct Malformed {};

/// Cuts a text into tokens and holds the place in it. `//` comments to the end of the line. The
/// first malformed token or failed expectation is recorded as a diagnostic; from then on every
/// token is `end`. An expectation that fails throws Malformed, so a parser needs no check after
/// each step. The text must outlive the stream.
class TokenStream {
public:
  TokenStream(std::string_view source, std::string file, Diagnostics& diagnostics);

  /// Runs what reads the whole text, a `what`. False when the text is malformed, as is recorded
  /// then.
  template <typename F> bool parseAll(std::string_view what, F&& parse) {
    try {
      parse();
      if (!at(TokenKind::end)) fail(peek(), "unexpected {} after the {}", peek().shown(), what);
    } catch (const Malformed&) {
      return false;
    }
    return !failed_;
  }

  const Token& peek(size_t ahead = 0);
  Token take();
  bool at(TokenKind kind) { return peek().kind == kind; }
  /// A punctuation mark or keyword.
  bool at(std::string_view text);
  /// Takes it when it is next.
  bool accept(std::string_view text);
  /// Takes it, or fails: "expected ')' but found 'x'".
  void expect(std::string_view text);
  /// A token of the kind; fails with "expected <what> but found ...".
  Token expect(TokenKind kind, std::string_view what);
  /// An integer within lowest .. highest.
  int64_t expectInt(std::string_view what, int64_t lowest = INT64_MIN, int64_t highest = INT64_MAX);
  /// The name of an element type.
  Elem expectElem();
  /// open item { , item } close, or nothing between the two; `item` reads one.
  template <typename F> void list(std::string_view open, std::string_view close, F&& item) {
    expect(open);
    if (accept(close)) return;
    do item();
    while (accept(","));
    expect(close);
  }

  /// What `inner` reads between the two.
  template <typename F> auto within(std::string_view open, std::string_view close, F&& inner) {
    expect(open);
    auto read = inner();
    expect(close);
    return read;
  }

  /// Records an error, stops the stream and throws Malformed.
  template <typename... Args>
  [[noreturn]] void fail(const Token& at, fmt::format_string<Args...> format, Args&&... args) {
    stop(at, fmt::format(format, std::forward<Args>(args)...));
    throw Malformed();
  }
  /// Records an error about meaning; reading goes on.
  void report(const Token& at, std::string message);

private:
  /// fail() without the exception: of the lexer, which may look ahead of what is parsed.
  void stop(const Token& at, std::string message);
  Token next();
  Token name(TokenKind kind);
  Token number();
  Token quotedString();
  char current(size_t ahead = 0) const {
    return place_ + ahead < source_.size() ? source_[place_ + ahead] : '\0';
  }
  void advance();

  std::string_view source_;
  std::string file_;
  Diagnostics& diagnostics_;
  size_t place_ = 0;
  int line_ = 1, column_ = 1;
  std::deque<Token> ahead_;
  bool failed_ = false;
};

/// "text" with quotes, backslashes and control characters escaped; the lexer reads it back to the
/// same bytes.
std::string quoteText(std::string_view text);
/// %name, or %"any name" when it is no identifier. `sigil` is '%' or '@'.
std::string nameText(char sigil, std::string_view name);

} // namespace candela::text
