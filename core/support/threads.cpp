#include "core/support/threads.h"

#include <exception>
#include <latch>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

namespace candela {
namespace {

using Body = std::function<void(size_t)>;

/// What the calls threw, by their number: an exception that left a thread would end the process.
class Thrown {
public:
  explicit Thrown(size_t count) : thrown_(count) {}
  void call(const Body& body, size_t i) {
    try {
      body(i);
    } catch (...) {
      thrown_[i] = std::current_exception();
    }
  }
  void rethrowFirst() const {
    for (const std::exception_ptr& one : thrown_)
      if (one) std::rethrow_exception(one);
  }

private:
  std::vector<std::exception_ptr> thrown_;
};

} // namespace

void atTheSameTime(size_t count, const Body& body) {
  Thrown thrown(count);
  std::latch ready(1); // counted down when it is known whether all threads are there
  bool areThere = false;
  std::exception_ptr missing;
  {
    std::vector<std::jthread> threads;
    try {
      threads.reserve(count);
      for (size_t i = 0; i < count; ++i)
        threads.emplace_back([&, i] {
          ready.wait();
          if (areThere) thrown.call(body, i);
        });
      areThere = true;
    } catch (...) {
      missing = std::current_exception();
    }
    ready.count_down();
  }
  if (missing) std::rethrow_exception(missing);
  thrown.rethrowFirst();
}

void onThreads(size_t count, const Body& body) {
  Thrown thrown(count);
  {
    std::vector<std::jthread> others;
    try {
      others.reserve(count);
      for (size_t i = 1; i < count; ++i) others.emplace_back([&, i] { thrown.call(body, i); });
    } catch (const std::system_error&) {
    } catch (const std::bad_alloc&) {}
    if (count) thrown.call(body, 0);
    for (size_t i = others.size() + 1; i < count; ++i) thrown.call(body, i);
  }
  thrown.rethrowFirst();
}

} // namespace candela
