#pragma once

#include <vector>

#include "core/support/status.h"

namespace candela {

/// A place in a text. line and column count from 1; line 0 is "no place in particular".
struct Location {
  std::string file;
  int line = 0;
  int column = 0;
};

struct Diagnostic {
  Location location;
  std::string message;
  /// "file:line:column: error: message", or "file: message" without a line.
  std::string text() const;
};

/// Collects what is wrong in a file, so that one run names everything. Not thread-safe.
class Diagnostics {
public:
  void error(Location location, std::string message) {
    list_.push_back({std::move(location), std::move(message)});
  }
  bool empty() const { return list_.empty(); }
  const std::vector<Diagnostic>& list() const { return list_; }
  /// Success when empty, else bad_model with every diagnostic, one a line.
  Status status() const;

private:
  std::vector<Diagnostic> list_;
};

} // namespace candela
