#include "core/support/diagnostic.h"

#include <ranges>

namespace candela {

std::string Diagnostic::text() const {
  if (location.line == 0)
    return location.file.empty() ? message : fmt::format("{}: {}", location.file, message);
  return fmt::format("{}:{}:{}: error: {}", location.file, location.line, location.column, message);
}

Status Diagnostics::status() const {
  if (list_.empty()) return Status::ok();
  return badModel("{}", fmt::join(list_ | std::views::transform(&Diagnostic::text), "\n"));
}

} // namespace candela
