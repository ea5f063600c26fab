#pragma once

#include <string>
#include <vector>

#include "core/support/status.h"

/// Errors that a text file announces: `// expected-error {{text}}`, with @+N, @-N or @* for another
/// line.
namespace candela::tool {

/// The parts of a text between lines of `// -----`, each behind as many empty lines as stood in
/// front of it, so that line numbers stay. A text without such a line is one part.
std::vector<std::string> splitParts(const std::string& text);

class ExpectedErrors {
public:
  ExpectedErrors(const std::string& text, std::string file);
  /// An error happened in this line (0: in none): takes the first announcement that fits.
  void match(int line, const std::string& message);
  /// Failure: mismatch, listing every error that nobody announced and every announcement that did
  /// not come true; also when the file announces nothing.
  Status finish() const;

private:
  struct Entry {
    int announcedAt, line; ///< line -1: any
    std::string text;
    bool seen = false;
  };
  std::string file_;
  std::vector<Entry> entries_;
  std::string problems_;
};

} // namespace candela::tool
