#pragma once

#include <functional>
#include <random>

#include "conformance/random/recipe.h"

/// Nodes made of their records: whoever adds a record has them. The same seed gives the same on
/// every machine: nothing here draws twice where the language leaves the order open, or from a
/// distribution of the library.
namespace candela::conformance::random {

class Random {
public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  uint64_t bits() { return engine_(); }
  int64_t below(int64_t count) {
    return static_cast<int64_t>(engine_() % static_cast<uint64_t>(count));
  }
  int64_t between(int64_t lo, int64_t hi) { return lo + below(hi - lo + 1); }
  bool oneIn(int64_t n) { return below(n) == 0; }
  double unit() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  template <typename List> const auto& of(const List& list) {
    return list[below(static_cast<int64_t>(std::size(list)))];
  }

private:
  std::mt19937_64 engine_;
};

/// One node before it has operands.
struct Draft {
  struct Operand {
    Elem elem = Elem::none; ///< none: absent
    Shape dims;
    bool constant = false;
    /// Places along a dim of so many elements; 0: numbers.
    int64_t extent = 0;
    double lo = 0, hi = 0; ///< values between them; equal: any
  };
  graph::OpKind kind;
  std::vector<Operand> operands;
  graph::Attrs attrs;
  int results = 1;
};

/// A draft whose first operand has this element type and, when it is given, this shape. Inference
/// may yet refuse it; nullopt when the shape does not fit the record.
std::optional<Draft> draftOf(const graph::OpInfo& info, Elem elem, const Shape* first,
                             Random& random);

/// Whether drafts are made of it: not of what a plugin alone knows.
bool isDrafted(const graph::OpInfo& info);

/// The element types that the first operand may have.
std::vector<Elem> firstElems(const graph::OpInfo& info);

enum class Data : uint8_t {
  calm,  ///< numbers near 1
  steps, ///< small whole numbers and halves: sums and products of them are exact
  /// NaN, infinities, zeros of both signs, subnormals and the limits of the type among calm ones
  corners,
  wide,     ///< magnitudes far apart
  bits,     ///< any bits
  extremes, ///< corners only
};
inline constexpr int kDataKinds = 6;
Tensor randomData(Elem elem, const Shape& dims, Data data, Random& random);
/// What the draft asks of the operand, else as `data` says.
Tensor dataOf(const Draft::Operand& operand, Data data, Random& random);

/// The draft with data, as a recipe whose outputs are the node's results. Failure: inference
/// refuses it, or it is larger than a sample should be.
Result<Recipe> recipeOf(const Draft& draft, Data data, Random& random);

} // namespace candela::conformance::random
