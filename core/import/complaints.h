#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "core/support/status.h"

namespace candela::import {

/// Everything that is wrong with a model, so that one run names it all.
class Complaints {
public:
  void add(Status status) {
    if (!status.isOk()) list_.push_back(std::move(status));
  }
  bool empty() const { return list_.empty(); }
  size_t count() const { return list_.size(); }
  /// Forgets what was added since, on a way that is not taken.
  void truncate(size_t count) { list_.resize(count); }
  /// Success when empty. Else one line each, with "path: " in front; the code is bad_model when one
  /// is, else what the caller can mend (invalid_argument), else what they all have in common.
  Status status(const std::string& path) const {
    if (list_.empty()) return Status::ok();
    constexpr size_t kMostLines = 200; // lines that anybody reads
    Code code = list_.front().code();
    for (Code worse : {Code::invalid_argument, Code::out_of_memory, Code::internal, Code::bad_model})
      if (std::ranges::count(list_, worse, &Status::code)) code = worse;
    std::string text;
    for (size_t i = 0; i < std::min(list_.size(), kMostLines); ++i)
      text += fmt::format("{}{}: {}", i ? "\n" : "", path, list_[i].message());
    if (list_.size() > kMostLines) text += fmt::format("\n{}: and {} more", path, list_.size() - kMostLines);
    return {code, std::move(text)};
  }

private:
  std::vector<Status> list_;
};

} // namespace candela::import
