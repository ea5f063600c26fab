#include "core/support/tensor.h"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "core/support/float_bits.h"
#include "core/support/out_of_memory.h"
#include "core/support/pages.h"

namespace candela {

std::optional<int64_t> elementCount(std::span<const int64_t> dims) {
  constexpr int64_t kLimit = int64_t(1) << 48;
  int64_t count = 1;
  bool empty = false;
  for (int64_t dim : dims) {
    if (dim < 0 || dim > kLimit) return std::nullopt;
    if (dim == 0) empty = true;
    if (!empty && __builtin_mul_overflow(count, dim, &count)) return std::nullopt;
    if (count > kLimit) return std::nullopt;
  }
  return empty ? 0 : count;
}

std::string shapeText(std::span<const int64_t> dims) {
  return dims.empty() ? "scalar" : fmt::format("{}", fmt::join(dims, "x"));
}

std::string typeText(Elem elem, std::span<const int64_t> dims) {
  return fmt::format("{}[{}]", elemName(elem), fmt::join(dims, ","));
}

std::vector<int64_t> denseStrides(std::span<const int64_t> dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;)
    strides[i - 1] =
        static_cast<int64_t>(static_cast<uint64_t>(strides[i]) * static_cast<uint64_t>(dims[i]));
  return strides;
}

uint64_t loadElement(Elem elem, const std::byte* data, int64_t index) {
  const int bits = elemBits(elem);
  if (const int per = elemsPerByte(elem); per > 1)
    return static_cast<uint64_t>(data[index / per]) >> (index % per * bits) & elemMask(elem);
  uint64_t value = 0;
  // little-endian hosts only, as the image
  std::memcpy(&value, data + index * (bits / 8), bits / 8);
  return value;
}

void storeElement(Elem elem, std::byte* data, int64_t index, uint64_t bits) {
  const int width = elemBits(elem);
  if (const int per = elemsPerByte(elem); per > 1) {
    const int shift = static_cast<int>(index % per * width);
    const std::byte mask = std::byte(elemMask(elem));
    data[index / per] = (data[index / per] & ~(mask << shift)) | (std::byte(bits) & mask) << shift;
    return;
  }
  std::memcpy(data + index * (width / 8), &bits, width / 8);
}

__int128 integerOf(Elem elem, uint64_t bits) {
  CDL_CHECK(!isFloat(elem), "{} is no integer type", elemName(elem));
  const int unused = 64 - elemBits(elem);
  return isSigned(elem) ? static_cast<int64_t>(bits << unused) >> unused : __int128(bits);
}

Result<Bytes> Bytes::allocate(uint64_t size) {
  if (size >= uint64_t(1) << 26) return zeroPages(size);
  const uint64_t rounded = (size + 63) / 64 * 64 + (size == 0 ? 64 : 0);
  void* data = std::aligned_alloc(64, rounded);
  if (!data) return failure(Code::out_of_memory, "cannot allocate {} bytes", size);
  std::memset(data, 0, rounded);
  return wrap(data, size, std::shared_ptr<const void>(data, [](const void* p) {
                std::free(const_cast<void*>(p));
              }));
}

Bytes Bytes::copyOf(const void* data, uint64_t size) {
  Bytes bytes = orThrow(allocate(size));
  if (size) std::memcpy(bytes.mutableData(), data, size);
  return bytes;
}

Bytes Bytes::slice(uint64_t offset, uint64_t size) const {
  CDL_CHECK(offset <= size_ && size <= size_ - offset);
  return {owner_, data_ + offset, size};
}

Result<Tensor> Tensor::zeros(Elem elem, Shape dims) {
  const auto count = elementCount(dims);
  if (!count) return badArgument("impossible shape {}", shapeText(dims));
  CDL_ASSIGN(Bytes bytes, Bytes::allocate(elemBytes(elem, *count)));
  return Tensor{elem, std::move(dims), std::move(bytes)};
}

std::vector<int64_t> Tensor::toInts() const {
  std::vector<int64_t> out(count());
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<int64_t>(
        integerOf(elem, loadElement(elem, bytes.data(), static_cast<int64_t>(i))));
  return out;
}

uint64_t splitmix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// How many of the last bits of an f32 a float type has no room for.
static int bitsBeyond(Elem elem) {
  if (elem == Elem::f16_) return 13;
  return elem == Elem::bf16_ ? 16 : 0;
}

Result<Tensor> randomTensor(Elem elem, Shape dims, uint64_t seed) {
  CDL_ASSIGN(Tensor tensor, Tensor::zeros(elem, std::move(dims)));
  const int64_t count = tensor.count();
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t r = splitmix64(seed + static_cast<uint64_t>(i));
    const float real = static_cast<float>(r >> 40) * 0x1p-24f * 2.0f - 1.0f;
    uint64_t bits = (r >> 53) - (isSigned(elem) ? 1024 : 0);
    if (isStorageOnly(elem)) {
      bits = isFloat(elem) ? fromReal(elem, elem == Elem::f8e8m0_ ? std::abs(real) : real)
                           : r >> (64 - elemBits(elem));
    } else if (isFloat(elem)) {
      // The value has 24 significant bits at most: it is cut to those of the type, so that nothing
      // is rounded.
      const uint32_t kept = ~uint32_t(0) << bitsBeyond(elem);
      bits = fromReal(elem, std::bit_cast<float>(std::bit_cast<uint32_t>(real) & kept));
    } else if (elemBits(elem) == 8) {
      bits = r >> (elem == Elem::bool_ ? 63 : 56);
    }
    storeElement(elem, tensor.bytes.mutableData(), i, bits);
  }
  return tensor;
}

} // namespace candela
