// Views as addresses, and the loops over them: dims collapsed, rows handed to a kernel.
#pragma once

#include <array>
#include <string>

#include "candela/backend/view.hpp"
#include "core/runtime/host_executor/elements.h"
#include "core/runtime/host_executor/scratch.h"

namespace candela::runtime::host_executor {

/// Elements that one call of a block function handles at most; scratch blocks have this many.
constexpr int64_t kBlock = 512;

/// A resolved view. `base` is the buffer's address; `start` and `strides` count elements. An absent
/// optional operand has elem 0.
struct Operand : cdl::Shape {
  char* base = nullptr;
  int64_t start = 0;
  uint8_t elem = 0;

  bool present() const { return elem != 0; }
  template <class T> T* at(int64_t element) const { return reinterpret_cast<T*>(base) + element; }
  /// After packed elements that end within a byte, that byte ends in zeros.
  void clearTail() const {
    const int64_t bits = elements() * cdl_elem_bits(elem),
                  last = (start * cdl_elem_bits(elem) + bits) / 8;
    if (bits % 8) base[last] = static_cast<char>(base[last] & ((1 << bits % 8) - 1));
  }
  char* address(int64_t element) const {
    return base + element * static_cast<int64_t>(cdl_elem_bits(elem) / 8);
  }
};

/// "[2,3]", for messages.
std::string dimsText(const Operand& operand);

/// A loop nest over operands of the same dims. Dims of 1 are gone and dims that lie alike in all
/// operands are one; the last dim is the row. Rank is at least 1.
struct Loop {
  int rank = 1;
  std::array<int64_t, CDL_MAX_RANK> dims{1};
  bool isTurned = false;   // another dim than the last one of the operands is the row
  Scratch<int64_t> starts; /* per operand */
  Scratch<std::array<int64_t, CDL_MAX_RANK>> strides; /* per operand */

  int64_t row() const { return dims[rank - 1]; }
  /// How many there are.
  int64_t rows() const {
    int64_t count = 1;
    for (int d = 0; d < rank - 1; ++d) count *= dims[d];
    return count;
  }
  int64_t rowStride(size_t operand) const { return strides[operand][rank - 1]; }
};
/// All operands have the dims of the first one.
Loop makeLoop(const Scratch<const Operand*>& operands);

/// Calls f(positions) for the rows first .. end - 1 of those that the outer dims number:
/// positions[k] is the element of operand k at which it begins.
template <class F> void forEachRow(const Loop& loop, int64_t first, int64_t end, F&& f) {
  if (first >= end) return;
  Scratch<int64_t> position = loop.starts;
  const size_t operands = position.size();
  std::array<int64_t, CDL_MAX_RANK> index{};
  int64_t rest = first;
  for (int d = loop.rank - 2; d >= 0 && rest > 0; --d) {
    index[d] = rest % loop.dims[d];
    rest /= loop.dims[d];
    for (size_t k = 0; k < operands; ++k) position[k] += loop.strides[k][d] * index[d];
  }
  for (int64_t r = first;;) {
    f(static_cast<const int64_t*>(position.data()));
    if (++r == end) return;
    for (int d = loop.rank - 2; d >= 0; --d) {
      if (++index[d] < loop.dims[d]) {
        for (size_t k = 0; k < operands; ++k) position[k] += loop.strides[k][d];
        break;
      }
      index[d] = 0;
      for (size_t k = 0; k < operands; ++k) position[k] -= loop.strides[k][d] * (loop.dims[d] - 1);
    }
  }
}

/// n elements at `position` with `stride` into a dense block, by the size of the element.
/// Packed ones become bytes.
void gatherBlock(const Operand& from, int64_t position, int64_t stride, int64_t n, void* to);
/// The other way.
void scatterBlock(const Operand& to, int64_t position, int64_t stride, int64_t n, const void* from);

/// Hands dense blocks of one operand to block functions: the operand's own memory where it is
/// dense, else a copy.
class BlockReader {
public:
  BlockReader() = default;
  explicit BlockReader(const Operand& operand) : operand_(operand) {}

  /// The next rows have this element stride.
  void setStride(int64_t stride) {
    stride_ = stride;
    splatted_ = 0;
    direct_ = stride == 1 && cdl_elem_bits(operand_.elem) >= 8;
    if (!direct_ && scratch_.empty()) scratch_.resize(kBlock);
  }
  /// n <= kBlock elements from `position` on; valid until the next call.
  const void* read(int64_t position, int64_t n) {
    if (direct_) return operand_.address(position);
    if (stride_ != 0) {
      gatherBlock(operand_, position, stride_, n, scratch_.data());
    } else if (position != splatPosition_ || n > splatted_) {
      gatherBlock(operand_, position, 0, n, scratch_.data());
      splatPosition_ = position;
      splatted_ = n;
    }
    return scratch_.data();
  }

private:
  Operand operand_;
  int64_t stride_ = 0, splatPosition_ = 0, splatted_ = 0;
  bool direct_ = false;
  Scratch<uint64_t> scratch_;
};

} // namespace candela::runtime::host_executor
