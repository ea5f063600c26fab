// View<T>: a strided window on memory, and loops over the rows of several views at once.
#pragma once

#include "candela/backend/status.hpp"

#include <array>
#include <type_traits>

namespace cdl {

/// 0 .. count - 1, for range-based for loops.
struct Range {
  struct Iterator {
    int64_t at;
    int64_t operator*() const { return at; }
    Iterator& operator++() { return ++at, *this; }
    bool operator!=(Iterator other) const { return at != other.at; }
  };
  int64_t count;
  Iterator begin() const { return {0}; }
  Iterator end() const { return {count}; }
};

/// Dims and strides, in elements. Every index below the dims was checked to lie inside of the
/// buffer.
struct Shape {
  int rank = 0;
  std::array<int64_t, CDL_MAX_RANK> dims{};
  std::array<int64_t, CDL_MAX_RANK> strides{};

  int64_t elements() const {
    int64_t n = 1;
    for (int d = 0; d < rank; ++d) n *= dims[d];
    return n;
  }
  /// Row-major and contiguous.
  bool isDense() const {
    int64_t expected = 1;
    for (int d = rank - 1; d >= 0; --d) {
      if (dims[d] != 1 && strides[d] != expected) return false;
      expected *= dims[d];
    }
    return true;
  }
};

/// Does the C++ type T hold elements of this type? bool is held by uint8_t (0 or 1), f16 and bf16
/// by uint16_t. Packed types have no C++ type: use Operand::data.
template <class T> bool holds(uint8_t elem) {
  static_assert(std::is_arithmetic_v<T> && !std::is_same_v<std::remove_const_t<T>, bool>);
  const bool isReal = elem == CDL_F32 || elem == CDL_F64;
  const bool isSigned =
      isReal || elem == CDL_I8 || elem == CDL_I16 || elem == CDL_I32 || elem == CDL_I64;
  return cdl_elem_bits(elem) == 8 * sizeof(T) && std::is_floating_point_v<T> == isReal &&
         std::is_signed_v<T> == isSigned;
}

template <class T> class View {
public:
  View() = default;
  View(T* data, const Shape& shape) : data_(data), shape_(shape) {}

  T* data() const { return data_; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank; }
  int64_t dim(int d) const { return shape_.dims[check(d)]; }
  int64_t stride(int d) const { return shape_.strides[check(d)]; }
  int64_t elements() const { return shape_.elements(); }
  bool isDense() const { return shape_.isDense(); }
  Range range(int d) const { return {dim(d)}; }

  /// The sub-view at index i of the first dim. i is below dim(0); not checked.
  View operator[](int64_t i) const {
    check(0);
    View sub(data_ + i * shape_.strides[0], Shape{shape_.rank - 1, {}, {}});
    for (int d = 1; d < shape_.rank; ++d) {
      sub.shape_.dims[d - 1] = shape_.dims[d];
      sub.shape_.strides[d - 1] = shape_.strides[d];
    }
    return sub;
  }
  /// One element; as many indices as the rank. Not checked.
  template <class... I> T& operator()(I... index) const {
    const int64_t indices[] = {static_cast<int64_t>(index)..., 0};
    int64_t offset = 0;
    for (size_t d = 0; d < sizeof...(I); ++d) offset += indices[d] * shape_.strides[d];
    return data_[offset];
  }

private:
  int check(int d) const {
    if (d < 0 || d >= shape_.rank)
      throw BadAccess(text("dim ", d, " of a view of rank ", shape_.rank));
    return d;
  }

  T* data_ = nullptr;
  Shape shape_;
};

/// A view whose element type is known at run time only. `data` is what the backend's address() made
/// of the buffer, at the view's first element (of packed elements: the byte of it).
struct Operand : Shape {
  void* data = nullptr;
  uint8_t elem = 0;
  uint8_t role = 0;    // of its buffer, CDL_ROLE_*
  uint16_t layout = 0; // index into the image's layouts
  uint32_t buffer = 0;

  template <class T> View<T> as() const {
    if (!holds<T>(elem))
      throw BadAccess(std::string("a view of ") + elemName(elem) +
                      " was asked for as another type");
    return View<T>(static_cast<T*>(data), *this);
  }
};

/// One row of a view: element i is data[i * stride].
template <class T> struct Row {
  T* data;
  int64_t stride;
  T& operator[](int64_t i) const { return data[i * stride]; }
};

namespace detail {

template <size_t N> struct Loops {
  int rank = 0;
  std::array<int64_t, CDL_MAX_RANK> dims{};
  std::array<std::array<int64_t, N>, CDL_MAX_RANK> strides{};
};

/// Joins neighbouring dims that all views step through evenly, and drops dims of 1: a dense tensor
/// becomes one row.
template <size_t N> Loops<N> coalesce(const std::array<const Shape*, N>& shapes) {
  Loops<N> loops;
  for (int d = 0; d < shapes[0]->rank; ++d) {
    const int64_t dim = shapes[0]->dims[d];
    if (dim == 1) continue;
    bool joins = loops.rank > 0;
    for (size_t v = 0; v < N && joins; ++v)
      joins = loops.strides[loops.rank - 1][v] == shapes[v]->strides[d] * dim;
    if (!joins) ++loops.rank;
    loops.dims[loops.rank - 1] = joins ? loops.dims[loops.rank - 1] * dim : dim;
    for (size_t v = 0; v < N; ++v) loops.strides[loops.rank - 1][v] = shapes[v]->strides[d];
  }
  if (loops.rank == 0) {
    loops.rank = 1;
    loops.dims[0] = 1;
  }
  return loops;
}

template <class F, class... T, size_t... V>
void forEachRow(F& body, std::index_sequence<V...>, const View<T>&... views) {
  const auto loops = coalesce<sizeof...(T)>({&views.shape()...});
  const int inner = loops.rank - 1;
  for (int d = 0; d < loops.rank; ++d)
    if (loops.dims[d] == 0) return;
  std::array<int64_t, CDL_MAX_RANK> index{};
  std::array<int64_t, sizeof...(T)> offset{};
  for (;;) {
    body(loops.dims[inner], Row<T>{views.data() + offset[V], loops.strides[inner][V]}...);
    int d = inner - 1;
    for (; d >= 0; --d) {
      ((offset[V] += loops.strides[d][V]), ...);
      if (++index[d] < loops.dims[d]) break;
      ((offset[V] -= loops.strides[d][V] * loops.dims[d]), ...);
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

} // namespace detail

/// Calls body(count, Row<T>...) for every row of views that have the same dims (broadcasting is a
/// stride of 0). Rows are as long as the strides allow: dense views of any rank are one row.
template <class F, class... T> void forEachRow(F&& body, const View<T>&... views) {
  detail::forEachRow(body, std::index_sequence_for<T...>(), views...);
}

} // namespace cdl
