// Memory that instructions work in: each thread keeps what one leaves for the next, so that a run
// like the one before allocates nothing.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

namespace candela::runtime::host_executor {

/// Blocks of one thread by their sizes, powers of two. Those above kLargest are not kept.
class ScratchBlocks {
public:
  static constexpr size_t kSmallest = 64, kLargest = size_t(1) << 24;

  ScratchBlocks() = default;
  ScratchBlocks(const ScratchBlocks&) = delete;
  ScratchBlocks& operator=(const ScratchBlocks&) = delete;
  ~ScratchBlocks() {
    for (Free*& list : free_)
      while (list) ::operator delete(std::exchange(list, list->next));
  }

  static ScratchBlocks& ofThread() {
    thread_local ScratchBlocks blocks;
    return blocks;
  }

  void* take(size_t bytes) {
    if (bytes > kLargest) return ::operator new(bytes);
    Free*& list = free_[classOf(bytes)];
    if (list) return std::exchange(list, list->next);
    return ::operator new(std::bit_ceil(std::max(bytes, kSmallest)));
  }
  void give(void* block, size_t bytes) {
    if (bytes > kLargest) return ::operator delete(block);
    Free*& list = free_[classOf(bytes)];
    list = new (block) Free{list};
  }

private:
  struct Free {
    Free* next;
  };
  static size_t classOf(size_t bytes) {
    return static_cast<size_t>(std::bit_width(std::max(bytes, kSmallest) - 1));
  }

  Free* free_[std::bit_width(kLargest)] = {};
};

template <class T> struct ScratchAllocator {
  using value_type = T;
  ScratchAllocator() = default;
  template <class U> ScratchAllocator(const ScratchAllocator<U>&) {}
  T* allocate(size_t count) {
    if (count > PTRDIFF_MAX / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(ScratchBlocks::ofThread().take(count * sizeof(T)));
  }
  void deallocate(T* data, size_t count) {
    ScratchBlocks::ofThread().give(data, count * sizeof(T));
  }
  friend bool operator==(const ScratchAllocator&, const ScratchAllocator&) { return true; }
};

/// A vector of the thread that makes it, for the time of one instruction.
template <class T> using Scratch = std::vector<T, ScratchAllocator<T>>;

} // namespace candela::runtime::host_executor
