#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <nlohmann/json.hpp>

/// JSON whose destructor needs no memory of the system. nlohmann's puts the children of each value
/// into a vector first, and ends the process where there is no memory for one: in a library, that
/// of its caller.
namespace candela::driver {

/// As std::allocator; it makes the type of our JSON one of its own.
template <typename T> class JsonMemory : public std::allocator<T> {
public:
  JsonMemory() = default;
  template <typename U> JsonMemory(const JsonMemory<U>&) noexcept {}
};

// Ordered, so that equal reports are equal bytes and a reader finds the answer first.
using SteadyJson = nlohmann::basic_json<nlohmann::ordered_map, std::vector, std::string, bool,
                                        std::int64_t, std::uint64_t, double, JsonMemory>;

/// A mebibyte for the vectors of destructors, which is touched only when there is no other memory:
/// 64 Ki children at once.
class LastMemory {
public:
  void* take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (bytes > bytes_.size() - used_) throw std::bad_alloc();
    void* const taken = bytes_.data() + used_;
    used_ += bytes;
    ++count_;
    return taken;
  }
  /// Whether it was of here.
  bool giveBack(void* pointer) {
    auto* const byte = static_cast<std::byte*>(pointer);
    if (byte < bytes_.data() || byte >= bytes_.data() + bytes_.size()) return false;
    const std::lock_guard lock(mutex_);
    if (--count_ == 0) used_ = 0;
    return true;
  }
  static LastMemory& instance() {
    static constinit LastMemory memory;
    return memory;
  }

private:
  alignas(std::max_align_t) std::array<std::byte, 1 << 20> bytes_{};
  size_t used_ = 0, count_ = 0;
  std::mutex mutex_;
};

} // namespace candela::driver

/// Of vectors of our JSON, which is what its destructor makes.
template <> class std::allocator<candela::driver::SteadyJson> {
public:
  using value_type = candela::driver::SteadyJson;
  allocator() = default;
  template <typename U> allocator(const allocator<U>&) noexcept {}

  value_type* allocate(size_t count);
  void deallocate(value_type* pointer, size_t) noexcept {
    if (!candela::driver::LastMemory::instance().giveBack(pointer)) ::operator delete(pointer);
  }
  friend bool operator==(const allocator&, const allocator&) { return true; }
};

inline candela::driver::SteadyJson*
std::allocator<candela::driver::SteadyJson>::allocate(size_t count) {
  const size_t bytes = count * sizeof(value_type);
  void* const memory = ::operator new(bytes, std::nothrow);
  return static_cast<value_type*>(memory ? memory
                                         : candela::driver::LastMemory::instance().take(bytes));
}
