#include "core/support/payload.h"

#include <cstring>

namespace candela {

Payload Payload::data(Tensor tensor) {
  Payload payload;
  payload.elem_ = tensor.elem;
  payload.count_ = tensor.count();
  payload.bytes_ = std::move(tensor.bytes);
  return payload;
}

Payload Payload::splat(Elem elem, int64_t count, uint64_t bits) {
  Payload payload;
  payload.form_ = Form::splat;
  payload.elem_ = elem;
  payload.count_ = count;
  payload.a_ = bits;
  return payload;
}

Payload Payload::iota(Elem elem, int64_t count, int64_t start, int64_t step) {
  Payload payload = splat(elem, count, static_cast<uint64_t>(start));
  payload.form_ = Form::iota;
  payload.b_ = step;
  return payload;
}

Payload Payload::random(Elem elem, int64_t count, uint64_t seed) {
  Payload payload = splat(elem, count, seed);
  payload.form_ = Form::random;
  return payload;
}

Result<Tensor> Payload::materialize(Shape dims) const {
  CDL_CHECK(elementCount(dims) == count_, "payload of {} elements, dims {}", count_, shapeText(dims));
  if (form_ == Form::data) return Tensor{elem_, std::move(dims), bytes_};
  if (form_ == Form::random) return randomTensor(elem_, std::move(dims), a_);
  CDL_ASSIGN(Tensor tensor, Tensor::zeros(elem_, std::move(dims)));
  std::byte* out = tensor.bytes.mutableData();
  const int bits = elemBits(elem_);
  if (bits == 4) {
    const auto nibble = [&](int64_t i) -> uint64_t { return (form_ == Form::splat ? a_ : a_ + i * b_) & 15; };
    for (int64_t i = 0; i < count_; ++i) out[i / 2] |= std::byte(nibble(i) << (i % 2 * 4));
    return tensor;
  }
  const int size = bits / 8;
  for (int64_t i = 0; i < count_; ++i) {
    const uint64_t value = form_ == Form::splat ? a_ : a_ + static_cast<uint64_t>(i) * static_cast<uint64_t>(b_);
    std::memcpy(out + i * size, &value, size); // little-endian hosts only, as the image
  }
  return tensor;
}

Hash Payload::hash() const {
  if (form_ == Form::data) return sha256(bytes_.data(), sizeBytes());
  auto tensor = materialize({count_});
  CDL_CHECK(tensor.isOk(), "{}", tensor.status().message());
  return sha256(tensor->bytes.data(), tensor->sizeBytes());
}

bool operator==(const Payload& a, const Payload& b) {
  if (a.form_ != b.form_ || a.elem_ != b.elem_ || a.count_ != b.count_) return false;
  if (a.form_ != Payload::Form::data) return a.a_ == b.a_ && a.b_ == b.b_;
  return a.bytes_.data() == b.bytes_.data() || std::memcmp(a.bytes_.data(), b.bytes_.data(), a.sizeBytes()) == 0;
}

} // namespace candela
