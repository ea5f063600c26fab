#pragma once

#include "core/compiler/graph/graph.h"

/// A constant behind casts and movement, without the tensor that these would make of it.
namespace candela::graph::passes {

/// A value whose element (i, j, ...) is the one of `stored` at offset + at(0, i) + at(1, j) + ...:
/// every dim walks the stored elements by strides of its own, several where a reshape joined what
/// does not lie evenly. Blocks of equal elements (a scale that was repeated) are factors of
/// stride 0.
class ConstantView {
public:
  /// Some of the elements of a dim, by one stride; the last factor of a dim varies fastest.
  struct Factor {
    int64_t extent;
    int64_t stride; ///< in stored elements; 0: the same one
  };
  struct Dim {
    int64_t extent; ///< at most the product of the factors: a slice may leave out the last ones
    std::vector<Factor> factors;
  };

  /// What `value` is: a constant behind casts that change no number, reshapes, transposes, slices
  /// and expands. nullopt for everything else, and for what has no element.
  static std::optional<ConstantView> of(const Value* value);

  const Value& stored() const { return *stored_; }
  const std::vector<Dim>& dims() const { return dims_; }
  /// How many neighbours along the dim, from a multiple of that number on, are the same stored
  /// element; the whole extent where all are.
  int64_t runLength(size_t dim) const;

  /// The view behind one more node of movement; nullopt: no view has that order.
  std::optional<ConstantView> behind(const Node& movement) const;
  /// As it broadcasts to these dims, which it does.
  ConstantView broadcastTo(const Shape& dims) const;
  /// The view of rank one, along `axis` of such dims.
  ConstantView alongAxis(size_t axis, const Shape& dims) const;

  /// Where the elements of a dim lie, from the offset on, every `step`-th one.
  std::vector<int64_t> places(size_t dim, int64_t step = 1) const;
  int64_t offset() const { return offset_; }

private:
  std::optional<ConstantView> reshaped(const Shape& shape) const;
  std::optional<ConstantView> sliced(const Node& slice) const;

  const Value* stored_ = nullptr;
  int64_t offset_ = 0;
  std::vector<Dim> dims_;
};

/// Whether a node moves elements as ConstantView::behind takes it.
bool isViewMovement(const Node& node);

/// Whether a cast of what had these types keeps every number of a narrow type: integers of 8 bits
/// at most, or of a difference of two, and floats of 8 bits at most.
bool keepsNarrowNumbers(Elem from, Elem to);

} // namespace candela::graph::passes
