// Bytes that begin on a cache line.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace cpu {

inline uint64_t padded(uint64_t bytes) { return (bytes + 63) & ~uint64_t(63); }

class AlignedBytes {
public:
  size_t size() const { return size_; }
  char* data() const { return data_.get(); }
  /// New bytes are zero.
  void resize(size_t size) {
    if (size > capacity_) reserve(size > 2 * capacity_ ? size : 2 * capacity_);
    size_ = size;
  }
  /// Room for so many bytes without moving.
  void reserve(size_t size) {
    if (size <= capacity_) return;
    const size_t capacity = (size + 63) & ~size_t(63);
    std::unique_ptr<char, Free> grown(static_cast<char*>(std::aligned_alloc(64, capacity)));
    if (!grown) throw std::bad_alloc();
    if (size_) std::memcpy(grown.get(), data_.get(), size_);
    std::memset(grown.get() + size_, 0, capacity - size_);
    data_ = std::move(grown);
    capacity_ = capacity;
  }

private:
  struct Free {
    void operator()(char* p) const { std::free(p); }
  };
  std::unique_ptr<char, Free> data_;
  size_t size_ = 0, capacity_ = 0;
};

} // namespace cpu
