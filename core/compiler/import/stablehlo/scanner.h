#pragma once

#include <string>
#include <string_view>

#include "core/compiler/import/refusal.h"

namespace candela::import::stablehlo {

/// Reads a text of MLIR from front to back: marks, words, names of values, texts in quotes. Space
/// and comments stand between any two of them.
class Scanner {
public:
  /// `line`: that on which the text begins in its file.
  explicit Scanner(std::string_view text, int64_t line = 1) : text_(text), line_(line) {}

  int64_t line() const { return line_; }
  size_t at() const { return at_; }
  /// The character that comes next; '\0' at the end.
  char peek();
  bool isNext(std::string_view mark);
  /// Goes behind the mark where it comes next. One of letters is followed by no letter.
  bool accept(std::string_view mark);
  void expect(std::string_view mark, const char* where);
  bool atEnd() { return peek() == '\0'; }

  /// Letters, digits, '_', '.', '$'; "" where none comes next.
  std::string_view word();
  /// Behind a mark such as '%' or '@'; also in quotes.
  std::string name(const char* what);
  /// Between quotes, with what is escaped as it is meant.
  std::string quoted();
  /// The text between quotes as it stands.
  std::string_view rawQuoted();
  /// What stands up to the bracket that closes the one behind which the scanner is, and goes behind
  /// it. Brackets of other kinds, texts and arrows may stand inside.
  std::string_view balanced(char open, char close);
  /// A number as it is written: "-1.5e+00", "0xFF80", "0x7FC00000".
  std::string_view number();
  /// Whatever stands up to the end of the line.
  void skipLine();
  /// loc(...) where it comes next.
  void skipLocation();

  [[noreturn]] void fail(const std::string& what);

private:
  void skipSpace();
  void advance();

  std::string_view text_;
  size_t at_ = 0;
  int64_t line_ = 1;
};

} // namespace candela::import::stablehlo
