#pragma once

#include <memory>
#include <mutex>
#include <vector>

namespace candela::runtime::session {

/// What calls leave for the next ones, so that those make nothing anew. Any thread.
template <class T> class Pool {
public:
  /// Null when none is left.
  std::unique_ptr<T> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return nullptr;
    std::unique_ptr<T> object = std::move(free_.back());
    free_.pop_back();
    return object;
  }
  void put(std::unique_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(object));
  }

private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<T>> free_;
};

} // namespace candela::runtime::session
