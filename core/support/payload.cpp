#include "core/support/payload.h"
#include "core/support/out_of_memory.h"

#include <algorithm>
#include <cstring>

namespace candela {

Result<Tensor> Payload::materialize(Shape dims) const {
  CDL_CHECK(elementCount(dims) == count_, "payload of {} elements, dims {}", count_,
            shapeText(dims));
  if (form_ == Form::data) return Tensor{elem_, std::move(dims), bytes_};
  if (form_ == Form::random) return randomTensor(elem_, std::move(dims), a_);
  CDL_ASSIGN(Tensor tensor, Tensor::zeros(elem_, std::move(dims)));
  if (form_ == Form::splat && a_ == 0) return tensor;
  // the first element, again and again
  if (form_ == Form::splat && elemBits(elem_) >= 8 && count_ > 0) {
    std::byte* const bytes = tensor.bytes.mutableData();
    storeElement(elem_, bytes, 0, a_);
    for (uint64_t done = elemBytes(elem_, 1), size = tensor.sizeBytes(); done < size; done *= 2)
      std::memcpy(bytes + done, bytes, std::min(done, size - done));
    return tensor;
  }
  for (int64_t i = 0; i < count_; ++i) {
    const uint64_t value =
        form_ == Form::splat ? a_ : a_ + static_cast<uint64_t>(i) * static_cast<uint64_t>(b_);
    storeElement(elem_, tensor.bytes.mutableData(), i, value);
  }
  return tensor;
}

Result<Payload> Payload::stored() const {
  if (form_ == Form::data || form_ == Form::splat) return *this;
  CDL_ASSIGN(Tensor tensor, materialize({count_}));
  return data(std::move(tensor));
}

Hash Payload::hash() const {
  const Tensor tensor = orThrow(materialize({count_}));
  return sha256(tensor.bytes.data(), tensor.sizeBytes());
}

bool operator==(const Payload& a, const Payload& b) {
  if (a.form_ != b.form_ || a.elem_ != b.elem_ || a.count_ != b.count_) return false;
  if (a.form_ != Payload::Form::data) return a.a_ == b.a_ && a.b_ == b.b_;
  return a.bytes_.data() == b.bytes_.data() ||
         std::memcmp(a.bytes_.data(), b.bytes_.data(), a.sizeBytes()) == 0;
}

} // namespace candela
