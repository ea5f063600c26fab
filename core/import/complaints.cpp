#include "core/import/complaints.h"

#include <algorithm>

namespace candela::import {

Status Complaints::status(const std::string& path) const {
  if (list_.empty()) return Status::ok();
  constexpr size_t kMost = 200; // lines that anybody reads
  const auto has = [&](Code code) {
    return std::any_of(list_.begin(), list_.end(), [&](const Status& s) { return s.code() == code; });
  };
  Code code = list_.front().code();
  for (Code worse : {Code::bad_model, Code::internal, Code::out_of_memory, Code::invalid_argument})
    if (has(worse)) {
      code = worse;
      break;
    }
  std::string text;
  for (size_t i = 0; i < std::min(list_.size(), kMost); ++i)
    text += fmt::format("{}{}: {}", i ? "\n" : "", path, list_[i].message());
  if (list_.size() > kMost) text += fmt::format("\n{}: and {} more", path, list_.size() - kMost);
  return {code, std::move(text)};
}

} // namespace candela::import
