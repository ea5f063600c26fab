#include "core/runtime/host_executor/operand.h"

#include <algorithm>

namespace candela::runtime::host_executor {

std::string dimsText(const Operand& operand) {
  std::string text = "[";
  for (int d = 0; d < operand.rank; ++d)
    text.append(d ? "," : "").append(std::to_string(operand.dims[d]));
  return text.append("]");
}

Loop makeLoop(const Scratch<const Operand*>& operands) {
  const Operand& first = *operands[0];
  Loop loop;
  loop.strides.resize(operands.size());
  for (const Operand* operand : operands) loop.starts.push_back(operand->start);
  int rank = 0;
  for (int d = 0; d < first.rank; ++d) {
    if (first.dims[d] == 1) continue;
    bool merge = rank > 0;
    for (size_t k = 0; merge && k < operands.size(); ++k)
      merge = loop.strides[k][rank - 1] == operands[k]->strides[d] * first.dims[d];
    if (merge) {
      loop.dims[rank - 1] *= first.dims[d];
    } else {
      loop.dims[rank++] = first.dims[d];
    }
    for (size_t k = 0; k < operands.size(); ++k)
      loop.strides[k][rank - 1] = operands[k]->strides[d];
  }
  if (rank == 0) return loop; // one element
  loop.rank = rank;
  // Rows of a few elements cost more than their elements: a much longer dim goes inside instead.
  int longest = rank - 1;
  for (int d = 0; d < rank - 1; ++d)
    if (loop.dims[d] > loop.dims[longest]) longest = d;
  if (loop.row() < 8 && loop.dims[longest] >= 4 * loop.row()) {
    loop.isTurned = true;
    std::swap(loop.dims[longest], loop.dims[rank - 1]);
    for (auto& strides : loop.strides) std::swap(strides[longest], strides[rank - 1]);
  }
  return loop;
}

void gatherBlock(const Operand& from, int64_t position, int64_t stride, int64_t n, void* to) {
  if (isPackedElem(from.elem)) {
    const int bits = static_cast<int>(cdl_elem_bits(from.elem));
    const bool isSigned = from.elem == CDL_I4 || from.elem == CDL_I2;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = position + i * stride;
      static_cast<uint8_t*>(to)[i] =
          isSigned ? static_cast<uint8_t>(cdl_packed_get_signed(from.base, at, bits))
                   : cdl_packed_get(from.base, at, bits);
    }
    return;
  }
  if (n == 0) return;
  withBits(from.elem, [&]<class T>(Tag<T>) {
    T* y = static_cast<T*>(to);
    const T* x = from.at<T>(position);
    if (stride == 0)
      std::fill_n(y, n, *x);
    else
      for (int64_t i = 0; i < n; ++i) y[i] = x[i * stride];
  });
}

void scatterBlock(const Operand& to, int64_t position, int64_t stride, int64_t n,
                  const void* from) {
  if (isPackedElem(to.elem)) {
    const int bits = static_cast<int>(cdl_elem_bits(to.elem));
    const uint8_t* x = static_cast<const uint8_t*>(from);
    for (int64_t i = 0; i < n; ++i) cdl_packed_set(to.base, position + i * stride, bits, x[i]);
    return;
  }
  withBits(to.elem, [&]<class T>(Tag<T>) {
    const T* x = static_cast<const T*>(from);
    T* y = to.at<T>(position);
    for (int64_t i = 0; i < n; ++i) y[i * stride] = x[i];
  });
}

} // namespace candela::runtime::host_executor
