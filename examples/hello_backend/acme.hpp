// The imaginary accelerator "Acme 16" and its driver, as a vendor has them: a memory of its own
// that explicit copies alone reach, and a vector unit of 16 lanes. Nothing here knows of Candela.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>

namespace acme {

constexpr int kLanes = 16;
constexpr uint64_t kBytes = uint64_t(4) << 30;
// Device addresses begin here, where no host has memory: to follow one on the host ends it.
constexpr uint64_t kBase = 0xACE0'0000'0000'0000;

/// A register of the vector unit.
template <class T> struct Vector {
  T lane[kLanes] = {};
};

/// One operation of the vector unit: f in every lane.
template <class F, class... X> auto lanewise(F f, const Vector<X>&... x) {
  Vector<decltype(f(x.lane[0]...))> y;
  for (int i = 0; i < kLanes; ++i) y.lane[i] = f(x.lane[i]...);
  return y;
}
template <class T> Vector<T> splat(T value) {
  Vector<T> y;
  std::fill_n(y.lane, kLanes, value);
  return y;
}

class Device {
public:
  /// The address of so many bytes, of undefined content; 0 when there is no room.
  uint64_t allocate(uint64_t bytes, uint64_t alignment) {
    if (bytes > kBytes || alignment > kBytes) return 0;
    std::lock_guard<std::mutex> lock(mutex_);
    uint64_t at = kBase;
    for (const auto& [start, size] : blocks_) { // the first gap that is wide enough
      if (at + bytes <= start) break;
      at = (start + size + alignment - 1) / alignment * alignment;
    }
    if (at + bytes > kBase + kBytes) return 0;
    blocks_[at] = bytes;
    return at;
  }
  void release(uint64_t address) {
    std::lock_guard<std::mutex> lock(mutex_);
    blocks_.erase(address);
  }

  void upload(uint64_t to, const void* from, uint64_t bytes) {
    std::memcpy(resolve(to, bytes), from, bytes);
  }
  void download(void* to, uint64_t from, uint64_t bytes) {
    std::memcpy(to, resolve(from, bytes), bytes);
  }
  void copy(uint64_t to, uint64_t from, uint64_t bytes) {
    std::memmove(resolve(to, bytes), resolve(from, bytes), bytes);
  }

  /// Elements at address, address + stride, ... into the first `lanes` lanes; the others are 0.
  template <class T> Vector<T> load(uint64_t address, int64_t stride, int64_t lanes) {
    Vector<T> v;
    if (stride == 1 && lanes == kLanes)
      std::memcpy(v.lane, resolve(address, sizeof v.lane), sizeof v.lane);
    else if (stride == 0)
      std::fill_n(v.lane, lanes, *static_cast<T*>(resolve(address, sizeof(T))));
    else
      for (int64_t i = 0; i < lanes; ++i)
        v.lane[i] =
            *static_cast<T*>(resolve(address + uint64_t(i * stride) * sizeof(T), sizeof(T)));
    return v;
  }
  template <class T>
  void store(uint64_t address, int64_t stride, int64_t lanes, const Vector<T>& v) {
    if (stride == 1 && lanes == kLanes)
      std::memcpy(resolve(address, sizeof v.lane), v.lane, sizeof v.lane);
    else
      for (int64_t i = 0; i < lanes; ++i)
        *static_cast<T*>(resolve(address + uint64_t(i * stride) * sizeof(T), sizeof(T))) =
            v.lane[i];
  }

private:
  void* resolve(uint64_t address, uint64_t bytes) const {
    if (address - kBase > kBytes || bytes > kBytes - (address - kBase))
      throw std::out_of_range("acme: bus error");
    return arena_.get() + (address - kBase);
  }

  std::unique_ptr<char[]> arena_{new char[kBytes]}; // pages that nobody touched cost nothing
  std::map<uint64_t, uint64_t> blocks_;             // address to bytes
  std::mutex mutex_;
};

} // namespace acme
