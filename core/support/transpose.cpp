#include "core/support/transpose.h"

namespace candela {

Result<Tensor> transposed(const Tensor& x, std::span<const int64_t> perm) {
  Tensor y{x.elem, {}, {}};
  const std::vector<int64_t> from = denseStrides(x.dims);
  std::vector<int64_t> strides;
  for (const int64_t dim : perm) {
    y.dims.push_back(x.dims[static_cast<size_t>(dim)]);
    strides.push_back(from[static_cast<size_t>(dim)]);
  }
  CDL_ASSIGN(y.bytes, Bytes::allocate(y.sizeBytes()));
  std::vector<int64_t> place(perm.size(), 0);
  int64_t source = 0;
  for (int64_t i = 0, count = y.count(); i < count; ++i) {
    storeElement(y.elem, y.bytes.mutableData(), i, loadElement(x.elem, x.bytes.data(), source));
    for (size_t d = perm.size(); d > 0; --d) { // to the next place, the last dim first
      source += strides[d - 1];
      if (++place[d - 1] < y.dims[d - 1]) break;
      source -= strides[d - 1] * y.dims[d - 1];
      place[d - 1] = 0;
    }
  }
  return y;
}

} // namespace candela
