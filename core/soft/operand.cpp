#include "core/soft/operand.h"

#include <cstdio>

namespace candela::soft {

bool sameDims(const Operand& a, const Operand& b) {
  if (a.rank != b.rank) return false;
  for (int d = 0; d < a.rank; ++d)
    if (a.dims[d] != b.dims[d]) return false;
  return true;
}

bool broadcastTo(Operand& operand, const Operand& like) {
  const int missing = like.rank - operand.rank;
  if (missing < 0) return false;
  Operand wide = operand;
  wide.rank = like.rank;
  for (int d = 0; d < like.rank; ++d) {
    const bool own = d >= missing && operand.dims[d - missing] == like.dims[d];
    if (!own && d >= missing && operand.dims[d - missing] != 1) return false;
    wide.dims[d] = like.dims[d];
    wide.strides[d] = own ? operand.strides[d - missing] : 0;
  }
  operand = wide;
  return true;
}

const char* dimsText(const Operand& operand) {
  thread_local char ring[4][8 * 21 + 4];
  thread_local unsigned next = 0;
  char* text = ring[next++ % 4];
  size_t size = 0;
  text[size++] = '[';
  for (int d = 0; d < operand.rank; ++d)
    size += static_cast<size_t>(std::snprintf(text + size, sizeof ring[0] - size, d ? ",%lld" : "%lld",
                                              static_cast<long long>(operand.dims[d])));
  text[size++] = ']';
  text[size] = 0;
  return text;
}

Loop makeLoop(const std::vector<const Operand*>& operands) {
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
    for (size_t k = 0; k < operands.size(); ++k) loop.strides[k][rank - 1] = operands[k]->strides[d];
  }
  if (rank == 0) return loop; // one element
  loop.rank = rank;
  // Rows of a few elements cost more than their elements: a much longer dim goes inside instead.
  int longest = rank - 1;
  for (int d = 0; d < rank - 1; ++d)
    if (loop.dims[d] > loop.dims[longest]) longest = d;
  if (loop.row() < 8 && loop.dims[longest] >= 4 * loop.row()) {
    std::swap(loop.dims[longest], loop.dims[rank - 1]);
    for (auto& strides : loop.strides) std::swap(strides[longest], strides[rank - 1]);
  }
  return loop;
}

namespace {

template <class T> void gather(const Operand& from, int64_t position, int64_t stride, int64_t n, void* to) {
  T* y = static_cast<T*>(to);
  if (n == 0) return;
  const T* x = from.at<T>(position);
  if (stride == 0) {
    const T value = *x;
    for (int64_t i = 0; i < n; ++i) y[i] = value;
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i * stride];
  }
}

template <class T> void scatter(const Operand& to, int64_t position, int64_t stride, int64_t n, const void* from) {
  const T* x = static_cast<const T*>(from);
  T* y = to.at<T>(position);
  for (int64_t i = 0; i < n; ++i) y[i * stride] = x[i];
}

} // namespace

void gatherBlock(const Operand& from, int64_t position, int64_t stride, int64_t n, void* to) {
  switch (elemBits(from.elem)) {
  case 4:
    for (int64_t i = 0; i < n; ++i)
      static_cast<uint8_t*>(to)[i] = from.elem == CDL_I4
                                         ? static_cast<uint8_t>(cdl_i4_get(from.base, position + i * stride))
                                         : cdl_u4_get(from.base, position + i * stride);
    return;
  case 8: return gather<uint8_t>(from, position, stride, n, to);
  case 16: return gather<uint16_t>(from, position, stride, n, to);
  case 32: return gather<uint32_t>(from, position, stride, n, to);
  default: return gather<uint64_t>(from, position, stride, n, to);
  }
}

void scatterBlock(const Operand& to, int64_t position, int64_t stride, int64_t n, const void* from) {
  switch (elemBits(to.elem)) {
  case 8: return scatter<uint8_t>(to, position, stride, n, from);
  case 16: return scatter<uint16_t>(to, position, stride, n, from);
  case 32: return scatter<uint32_t>(to, position, stride, n, from);
  default: return scatter<uint64_t>(to, position, stride, n, from);
  }
}

} // namespace candela::soft
