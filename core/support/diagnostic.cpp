#include "core/support/diagnostic.h"

namespace candela {

std::string Diagnostic::text() const {
  if (location.line == 0) return location.file.empty() ? message : fmt::format("{}: {}", location.file, message);
  return fmt::format("{}:{}:{}: error: {}", location.file, location.line, location.column, message);
}

Status Diagnostics::status() const {
  if (list_.empty()) return Status::ok();
  std::string text;
  for (const Diagnostic& diagnostic : list_) {
    if (!text.empty()) text += '\n';
    text += diagnostic.text();
  }
  return {Code::bad_model, std::move(text)};
}

} // namespace candela
