#pragma once

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
  /// Success when empty. Else one line each, with "path: " in front; the code is bad_model when one
  /// is, else what the caller can mend (invalid_argument), else what they all have in common.
  Status status(const std::string& path) const;

private:
  std::vector<Status> list_;
};

} // namespace candela::import
