#include "core/support/tensor.h"

#include <cstdlib>
#include <cstring>
#include <new>

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

std::vector<int64_t> denseStrides(std::span<const int64_t> dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;)
    strides[i - 1] = static_cast<int64_t>(static_cast<uint64_t>(strides[i]) * static_cast<uint64_t>(dims[i]));
  return strides;
}

Result<Bytes> Bytes::allocate(uint64_t size) {
  const uint64_t rounded = (size + 63) / 64 * 64 + (size == 0 ? 64 : 0);
  void* data = size > (uint64_t(1) << 46) ? nullptr : std::aligned_alloc(64, rounded);
  if (!data) return failure(Code::out_of_memory, "cannot allocate {} bytes", size);
  std::memset(data, 0, rounded);
  Bytes bytes;
  bytes.owner_ = std::shared_ptr<const void>(data, [](const void* p) { std::free(const_cast<void*>(p)); });
  bytes.data_ = static_cast<std::byte*>(data);
  bytes.size_ = size;
  return bytes;
}

Bytes Bytes::copyOf(const void* data, uint64_t size) {
  auto bytes = allocate(size);
  CDL_CHECK(bytes.isOk(), "{}", bytes.status().message());
  if (size) std::memcpy(bytes->mutableData(), data, size);
  return std::move(bytes).value();
}

Bytes Bytes::wrap(const void* data, uint64_t size, std::shared_ptr<const void> keepAlive) {
  Bytes bytes;
  bytes.owner_ = std::move(keepAlive);
  bytes.data_ = static_cast<std::byte*>(const_cast<void*>(data));
  bytes.size_ = size;
  return bytes;
}

Bytes Bytes::slice(uint64_t offset, uint64_t size) const {
  CDL_CHECK(offset <= size_ && size <= size_ - offset);
  Bytes bytes = *this;
  bytes.data_ += offset;
  bytes.size_ = size;
  return bytes;
}

Result<Tensor> Tensor::zeros(Elem elem, Shape dims) {
  const auto count = elementCount(dims);
  if (!count) return badArgument("impossible shape {}", shapeText(dims));
  CDL_ASSIGN(Bytes bytes, Bytes::allocate(elemBytes(elem, *count)));
  return Tensor{elem, std::move(dims), std::move(bytes)};
}

std::vector<int64_t> Tensor::toInts() const {
  std::vector<int64_t> out(count());
  for (size_t i = 0; i < out.size(); ++i) {
    switch (elem) {
    case Elem::i8_: out[i] = as<int8_t>()[i]; break;
    case Elem::u8_:
    case Elem::bool_: out[i] = as<uint8_t>()[i]; break;
    case Elem::i16_: out[i] = as<int16_t>()[i]; break;
    case Elem::u16_: out[i] = as<uint16_t>()[i]; break;
    case Elem::i32_: out[i] = as<int32_t>()[i]; break;
    case Elem::u32_: out[i] = as<uint32_t>()[i]; break;
    case Elem::i64_:
    case Elem::u64_: out[i] = as<int64_t>()[i]; break;
    default: CDL_CHECK(false, "{} is no integer type", elemName(elem));
    }
  }
  return out;
}

std::string Tensor::typeText() const { return fmt::format("{}[{}]", elemName(elem), fmt::join(dims, ",")); }

uint64_t splitmix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

namespace {

/// f32 in [-1, 1) has 24 significant bits, so dropping mantissa bits is a truncation that needs no rounding rule.
uint16_t truncateToF16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  const uint32_t sign = bits >> 16 & 0x8000;
  const int exponent = static_cast<int>(bits >> 23 & 255) - 127 + 15;
  const uint32_t mantissa = (bits & 0x7fffff) | 0x800000;
  if (exponent <= 0) return exponent < -10 ? sign : sign | (mantissa >> (14 - exponent));
  return static_cast<uint16_t>(sign | exponent << 10 | (mantissa >> 13 & 0x3ff));
}

} // namespace

Result<Tensor> randomTensor(Elem elem, Shape dims, uint64_t seed) {
  if (isStorageOnly(elem)) return badArgument("no random data for storage type {}", elemName(elem));
  CDL_ASSIGN(Tensor tensor, Tensor::zeros(elem, std::move(dims)));
  const int64_t count = tensor.count();
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t r = splitmix64(seed + static_cast<uint64_t>(i));
    const float real = static_cast<float>(r >> 40) * 0x1p-24f * 2.0f - 1.0f;
    const int64_t wide = static_cast<int64_t>(r >> 53) - (isSigned(elem) ? 1024 : 0);
    uint32_t bits;
    std::memcpy(&bits, &real, 4);
    switch (elem) {
    case Elem::f32_: tensor.mutableAs<float>()[i] = real; break;
    case Elem::f64_: tensor.mutableAs<double>()[i] = real; break;
    case Elem::f16_: tensor.mutableAs<uint16_t>()[i] = truncateToF16(real); break;
    case Elem::bf16_: tensor.mutableAs<uint16_t>()[i] = static_cast<uint16_t>(bits >> 16); break;
    case Elem::bool_: tensor.mutableAs<uint8_t>()[i] = r >> 63; break;
    case Elem::i8_:
    case Elem::u8_: tensor.mutableAs<uint8_t>()[i] = r >> 56; break;
    case Elem::i16_:
    case Elem::u16_: tensor.mutableAs<int16_t>()[i] = static_cast<int16_t>(wide); break;
    case Elem::i32_:
    case Elem::u32_: tensor.mutableAs<int32_t>()[i] = static_cast<int32_t>(wide); break;
    default: tensor.mutableAs<int64_t>()[i] = wide; break;
    }
  }
  return tensor;
}

} // namespace candela
