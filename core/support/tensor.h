#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "core/support/elem.h"
#include "core/support/status.h"

namespace candela {

using Shape = std::vector<int64_t>;

/// Number of elements, 1 for rank 0; nullopt when negative dims or the product leaves 2^48.
std::optional<int64_t> elementCount(std::span<const int64_t> dims);
/// "1x3x224x224"; rank 0 is "scalar".
std::string shapeText(std::span<const int64_t> dims);
/// Row-major strides in elements; they wrap where elementCount() is nullopt.
std::vector<int64_t> denseStrides(std::span<const int64_t> dims);

/// "f32[1,3,224,224]"
std::string typeText(Elem elem, std::span<const int64_t> dims);

/// One element, zero-extended; of packed storage too.
uint64_t loadElement(Elem elem, const std::byte* data, int64_t index);
void storeElement(Elem elem, std::byte* data, int64_t index, uint64_t bits);
/// The value of an element of an integer type, or of bool.
__int128 integerOf(Elem elem, uint64_t bits);

/// Shared bytes, 64-byte aligned when allocated here. Copies share; `keepAlive` holds a mapping
/// when it is one.
class Bytes {
public:
  Bytes() = default;
  /// Zeroed. Failure: out_of_memory.
  static Result<Bytes> allocate(uint64_t size);
  static Bytes copyOf(const void* data, uint64_t size);
  /// Bytes that something else owns for as long as keepAlive lives.
  static Bytes wrap(const void* data, uint64_t size, std::shared_ptr<const void> keepAlive) {
    return {std::move(keepAlive), static_cast<std::byte*>(const_cast<void*>(data)), size};
  }

  const std::byte* data() const { return data_; }
  /// only by the one who allocated it, before it is shared
  std::byte* mutableData() { return data_; }
  uint64_t size() const { return size_; }
  Bytes slice(uint64_t offset, uint64_t size) const;

private:
  Bytes(std::shared_ptr<const void> owner, std::byte* data, uint64_t size)
      : owner_(std::move(owner)), data_(data), size_(size) {}
  std::shared_ptr<const void> owner_;
  std::byte* data_ = nullptr;
  uint64_t size_ = 0;
};

/// A dense row-major tensor in host memory. Copies share the bytes.
struct Tensor {
  Elem elem = Elem::none;
  Shape dims;
  Bytes bytes;

  /// Zeroed. Failure: out_of_memory, or invalid_argument for impossible dims.
  static Result<Tensor> zeros(Elem elem, Shape dims);
  template <typename T> static Tensor of(Elem elem, Shape dims, const std::vector<T>& values) {
    return {elem, std::move(dims), Bytes::copyOf(values.data(), values.size() * sizeof(T))};
  }
  static Tensor scalarI64(int64_t value) { return of<int64_t>(Elem::i64_, {}, {value}); }

  int64_t count() const { return elementCount(dims).value_or(0); }
  uint64_t sizeBytes() const { return elemBytes(elem, count()); }
  template <typename T> const T* as() const { return reinterpret_cast<const T*>(bytes.data()); }
  template <typename T> T* mutableAs() { return reinterpret_cast<T*>(bytes.mutableData()); }
  /// Integer and bool elements widened to i64 (u64 wraps).
  std::vector<int64_t> toInts() const;
  /// "f32[1,3,224,224]"
  std::string typeText() const { return candela::typeText(elem, dims); }
};

/// The project's definition of reproducible data: element i comes from splitmix64(seed + i). Floats
/// lie in [-1, 1) with 24 bits; integers of up to 8 bits cover their type; wider signed integers
/// lie in [-1024, 1023], unsigned in [0, 2047]. Storage floats are rounded from f32, f8e8m0 from
/// its magnitude. Defined in tests/models/README.md; `--random` and the text form's random(seed)
/// use it.
uint64_t splitmix64(uint64_t x);
Result<Tensor> randomTensor(Elem elem, Shape dims, uint64_t seed);

} // namespace candela
