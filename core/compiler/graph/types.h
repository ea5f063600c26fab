#pragma once

#include "core/support/tensor.h"

namespace candela::graph {

/// A physical layout: ordered (logical dim, factor), outer to inner; factor 0 is what the inner
/// factors of that dim leave over. Empty: row-major. pad: content of what rounding up adds.
struct Layout {
  enum class Pad : uint8_t { undefined, zero, zeroPoint };
  struct Step {
    uint8_t dim = 0;
    uint32_t factor = 0;
    friend bool operator==(const Step&, const Step&) = default;
  };
  std::vector<Step> steps;
  Pad pad = Pad::undefined;
  bool isRowMajor() const { return steps.empty(); }
  /// How many logical indices one step of physical dim i moves: the product of its dim's factors
  /// inside of it.
  int64_t stepOf(size_t i) const;
  /// True when no block of a value of this shape is partly empty, and the ranks agree.
  bool divides(const Shape& shape) const;
  friend bool operator==(const Layout&, const Layout&) = default;
};

/// A border in memory: so many elements before and behind each physical dim hold `fill` whenever
/// the content is read.
struct Halo {
  std::vector<uint32_t> lo, hi;
  uint64_t fill = 0; ///< bits of one element
  friend bool operator==(const Halo&, const Halo&) = default;
};

/// The type of a value: strongly typed, logical dims in ONNX order.
struct TensorType {
  Elem elem = Elem::none;
  Shape dims;
  Layout layout;
  std::shared_ptr<const Halo> halo; ///< null: none

  TensorType() = default;
  TensorType(Elem elem, Shape dims) : elem(elem), dims(std::move(dims)) {}

  int rank() const { return static_cast<int>(dims.size()); }
  int64_t dim(int i) const { return dims[i < 0 ? i + rank() : i]; }
  Shape shape() const { return dims; } ///< a copy, so that it may outlive the type
  int64_t count() const;               ///< elements
  /// The extents in memory, outer to inner: one per step of the layout, blocks rounded up; the
  /// shape when row-major.
  Shape physicalDims() const;
  /// Elements between neighbours along each of them, and before the first one: a halo lies in
  /// between.
  std::vector<int64_t> physicalStrides() const;
  int64_t physicalOffset() const;
  int64_t physicalCount() const; ///< elements in memory, with the halo
  /// "f32[1,3,8,8]"; layout and halo follow in braces.
  std::string text() const;
  friend bool operator==(const TensorType& a, const TensorType& b);
};

/// The dim that an axis in -rank..rank-1 means.
inline int wrapAxis(int64_t axis, int rank) {
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

/// The shape that NumPy-style multidirectional broadcasting gives; nullopt when it does not fit.
std::optional<Shape> broadcastShapes(Shape a, const Shape& b);

} // namespace candela::graph
