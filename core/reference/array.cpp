#include <algorithm>

#include "core/reference/reference.h"
#include "core/support/text/literal.h"

namespace candela::reference {

Array::Array(Elem elem, Shape dims) : elem(elem), dims(std::move(dims)) {
  const auto count = elementCount(this->dims);
  CDL_CHECK(count, "impossible shape {}", shapeText(this->dims));
  if (isFloat(elem)) {
    real.resize(*count);
  } else {
    whole.resize(*count);
  }
}

Scalar Array::at(int64_t i) const {
  if (isFloat(elem)) return {real[i], 0};
  return {0, whole[i]};
}

void Array::set(int64_t i, const Scalar& value) {
  if (isFloat(elem))
    real[i] = value.real;
  else
    whole[i] = value.whole;
}

void Array::fill(const Scalar& value) {
  std::fill(real.begin(), real.end(), value.real);
  std::fill(whole.begin(), whole.end(), value.whole);
}

Result<Array> fromTensor(const Tensor& tensor) {
  const auto count = elementCount(tensor.dims);
  if (!count || !isValidElem(static_cast<unsigned>(tensor.elem)))
    return badArgument("impossible tensor {}", tensor.typeText());
  CDL_TRY(checkSize(tensor.dims));
  Array array(tensor.elem, tensor.dims);
  for (int64_t i = 0; i < *count; ++i)
    array.set(i, decode(tensor.elem, loadElement(tensor.elem, tensor.bytes.data(), i)));
  return array;
}

Result<Tensor> toTensor(const Array& array) {
  CDL_ASSIGN(Tensor tensor, Tensor::zeros(array.elem, array.dims));
  std::byte* data = tensor.bytes.mutableData();
  for (int64_t i = 0; i < array.count(); ++i) storeElement(array.elem, data, i, encode(array.elem, array.at(i)));
  return tensor;
}

Status checkSize(std::span<const int64_t> dims) {
  constexpr int64_t kLimit = int64_t(1) << 30;
  const auto count = elementCount(dims);
  if (count && *count <= kLimit) return Status::ok();
  return failure(Code::out_of_memory, "a tensor of shape {} is above the oracle's limit of {} elements",
                 shapeText(dims), kLimit);
}

} // namespace candela::reference
