#include <cmath>

#include "core/reference/reference.h"
#include "core/reference/scalar.h"
#include "core/support/float_bits.h"
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

Result<Array> fromTensor(const Tensor& tensor) {
  const auto count = elementCount(tensor.dims);
  if (!count || !isValidElem(static_cast<unsigned>(tensor.elem)))
    return badArgument("impossible tensor {}", tensor.typeText());
  CDL_TRY(checkSize(tensor.dims));
  Array array(tensor.elem, tensor.dims);
  const std::byte* data = tensor.bytes.data();
  for (int64_t i = 0; i < *count; ++i) {
    const uint64_t bits = loadElement(tensor.elem, data, i);
    if (isFloat(tensor.elem)) {
      array.real[i] = toReal(tensor.elem, bits);
    } else {
      array.whole[i] = wrap(tensor.elem, static_cast<Whole>(bits));
    }
  }
  return array;
}

Result<Tensor> toTensor(const Array& array) {
  CDL_ASSIGN(Tensor tensor, Tensor::zeros(array.elem, array.dims));
  std::byte* data = tensor.bytes.mutableData();
  const int64_t count = array.count();
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t bits = isFloat(array.elem) ? fromReal(array.elem, array.real[i])
                                              : static_cast<uint64_t>(wrap(array.elem, array.whole[i]));
    storeElement(array.elem, data, i, bits);
  }
  return tensor;
}

Status checkSize(std::span<const int64_t> dims) {
  constexpr int64_t kLimit = int64_t(1) << 30;
  const auto count = elementCount(dims);
  if (count && *count <= kLimit) return Status::ok();
  return failure(Code::out_of_memory, "a tensor of shape {} is above the oracle's limit of {} elements",
                 shapeText(dims), kLimit);
}

void roundToElem(Array& array) {
  for (double& value : array.real) value = roundReal(array.elem, value);
  for (Whole& value : array.whole) value = wrap(array.elem, value);
}

} // namespace candela::reference
