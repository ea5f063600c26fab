// The host's threads, for work that a backend computes on the host.
#pragma once

#include "candela/cdl.h"

#include <atomic>
#include <exception>
#include <functional>

namespace cdl {

namespace detail {

/// The bodies of one parallelFor, and what the first of them threw: nothing may pass the interface.
class Bodies {
public:
  explicit Bodies(const std::function<void(uint32_t)>& body) : body_(body) {}

  static void call(void* bodies, uint32_t index) noexcept {
    static_cast<Bodies*>(bodies)->call(index);
  }
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

private:
  void call(uint32_t index) noexcept {
    if (failed_.load(std::memory_order_relaxed)) return;
    try {
      body_(index);
    } catch (...) {
      if (!failed_.exchange(true)) thrown_ = std::current_exception();
    }
  }

  const std::function<void(uint32_t)>& body_;
  std::atomic<bool> failed_{false};
  std::exception_ptr thrown_;
};

} // namespace detail

/// Calls body(0) .. body(count - 1) once each by the host's parallel_for, or one by one where the
/// host has none, and returns when all are done. What a body throws is thrown here, of several the
/// first; bodies that have not begun by then are left out.
inline void parallelFor(const cdl_host_t& host, uint32_t count,
                        const std::function<void(uint32_t)>& body) {
  if (!host.parallel_for) {
    for (uint32_t i = 0; i < count; ++i) body(i);
    return;
  }
  detail::Bodies bodies(body);
  host.parallel_for(host.context, count, detail::Bodies::call, &bodies);
  bodies.rethrow();
}

} // namespace cdl
