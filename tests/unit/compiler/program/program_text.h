#pragma once

#include <string>

#include "core/compiler/program/text.h"

namespace candela::test {

/// A Program of declarations and instructions in one default space @host.
inline Result<program::Program> parseBody(const std::string& body) {
  Diagnostics diagnostics;
  return program::parse("program @t {\n  space @host {align 64}\n" + body + "\n}\n", "t.cdl",
                        diagnostics);
}

/// What is wrong with it, without the place; empty when nothing is.
inline std::string errorOf(const std::string& body) {
  Diagnostics diagnostics;
  const auto parsed = program::parse(
      "program @t engines(2) {\n  space @host {align 64}\n" + body + "\n}\n", "t.cdl", diagnostics);
  return parsed ? "" : diagnostics.list().front().message;
}

} // namespace candela::test
