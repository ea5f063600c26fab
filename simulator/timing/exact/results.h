#pragma once

#include <deque>

#include "simulator/timing/exact/ports.h"

namespace candela::npu::exact {

/// What leaves an engine with lanes: results in order, each so many cycles behind its step, and no
/// more under way than there is room for.
class Results {
public:
  struct Place {
    int64_t address = 0, bytes = 0, row = 0;
  };
  static constexpr int64_t kRoom = 32;

  bool hasRoom() const { return underWay_ != kRoom; }
  int64_t underWay() const { return underWay_; }
  /// The result of a step of this cycle can leave from cycle `from` on.
  void add(const Place& place, int64_t from) {
    entries_.push_back({place, from});
    ++underWay_;
  }
  /// The one that can leave in that cycle, or null.
  const Place* front(int64_t now) const {
    return entries_.empty() || entries_.front().from > now ? nullptr : &entries_.front().place;
  }
  void pop() {
    entries_.pop_front();
    --underWay_;
  }

private:
  struct Entry {
    Place place;
    int64_t from;
  };
  std::deque<Entry> entries_;
  int64_t underWay_ = 0;
};

} // namespace candela::npu::exact
