#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "core/support/status.h"

namespace candela::import {

/// What a diagnostic rules out.
enum class Reach : uint8_t {
  model, ///< every run: the model contradicts itself
  block, ///< runs that get to the block where it stands: types and shapes
};

/// Everything that is wrong with a model, so that one run names it all.
class ImportDiagnostics {
public:
  void add(Status status, Reach reach = Reach::model) {
    if (!status.isOk()) list_.push_back({std::move(status), reach});
  }
  bool empty() const { return list_.empty(); }
  size_t count() const { return list_.size(); }
  /// Forgets what was added since, on a way that is not taken.
  void truncate(size_t count) {
    list_.erase(list_.begin() + static_cast<ptrdiff_t>(count), list_.end());
  }
  /// Whether something was added since, and nothing that rules out the model.
  bool onlyOfBlock(size_t since) const {
    return list_.size() > since &&
           std::all_of(list_.begin() + static_cast<ptrdiff_t>(since), list_.end(),
                       [](const Entry& entry) { return entry.reach == Reach::block; });
  }
  /// What was added since, and forgets it here.
  ImportDiagnostics take(size_t since) {
    ImportDiagnostics taken;
    taken.list_.assign(list_.begin() + static_cast<ptrdiff_t>(since), list_.end());
    truncate(since);
    return taken;
  }
  void add(const ImportDiagnostics& others) {
    list_.insert(list_.end(), others.list_.begin(), others.list_.end());
  }
  /// Success when empty. Else one line each, with "path: " in front where there is one; the code is
  /// bad_model when one is, else what the caller can correct (invalid_argument), else what they all
  /// have in common.
  Status status(const std::string& path) const {
    if (list_.empty()) return Status::ok();
    constexpr size_t kMostLines = 200; // lines that anybody reads
    Code code = list_.front().status.code();
    for (Code worse :
         {Code::invalid_argument, Code::out_of_memory, Code::internal, Code::bad_model})
      if (std::ranges::count(list_, worse, [](const Entry& entry) { return entry.status.code(); }))
        code = worse;
    const std::string front = path.empty() ? "" : path + ": ";
    std::string text;
    for (size_t i = 0; i < std::min(list_.size(), kMostLines); ++i)
      text += fmt::format("{}{}{}", i ? "\n" : "", front, list_[i].status.message());
    if (list_.size() > kMostLines)
      text += fmt::format("\n{}and {} more", front, list_.size() - kMostLines);
    return {code, std::move(text)};
  }

private:
  struct Entry {
    Status status;
    Reach reach;
  };
  std::vector<Entry> list_;
};

} // namespace candela::import
