#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/compiler/export/refusals/refusals.h"

namespace candela::exporter::tosa {

/// A value of the function that is written.
struct Value {
  std::string name; ///< "%7"; "": an operand that is absent
  Elem elem = Elem::none;
  Shape dims = {};

  bool isAbsent() const { return name.empty(); }
  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  int64_t dim(int64_t i) const { return dims[static_cast<size_t>(i)]; }
};
using Values = std::vector<Value>;

/// "tensor<1x3xf32>". Throws a Refusal for types that TOSA has not.
std::string typeOf(Elem elem, const Shape& dims);

/// Writes ops, each in a line, with the types of their operands and results.
class FunctionWriter {
public:
  /// All nodes; what cannot be said goes to `refusals`.
  void write(const graph::Graph& graph, Refusals& refusals);
  const std::string& text() const { return text_; }

  /// The value's, absent for null.
  Value of(const graph::Value* value);
  Values operandsOf(const graph::Node& node);
  void bind(const graph::Value* value, const Value& written);
  void addArgument(const graph::Value* value);

  /// An op of one result. `attributes`: what stands between the braces.
  Value make(const std::string& op, const Values& operands, Elem elem, Shape dims,
             const std::string& attributes = "");
  /// Of operands that broadcast, which are brought to one rank first, with a result of the last
  /// one's type.
  Value op(const std::string& op, Values operands, const std::string& attributes = "");
  Value test(const std::string& op, const Value& a, const Value& b);

  Value constant(const Tensor& tensor);
  Value number(double value, Elem elem); ///< a scalar
  Value ints(const std::vector<int64_t>& values, Shape dims);

  Value cast(const Value& x, Elem to);
  /// Halves as f32, so that formulas of several steps round once.
  Value widened(const Value& x);
  Value reshape(const Value& x, const Shape& dims);
  Value transpose(const Value& x, const std::vector<int64_t>& perm);
  Value expand(const Value& x, const Shape& dims);
  Value slice(const Value& x, const std::vector<int64_t>& start, const Shape& size);
  /// With zeros or a scalar around it.
  Value pad(const Value& x, const std::vector<int64_t>& lo, const std::vector<int64_t>& hi,
            const Value& value = {});
  Value concat(const Values& pieces, int64_t axis);
  /// Slices along an axis at these places, each inside: x[:axis] + index + x[axis+1:].
  Value takeAlong(const Value& x, int64_t axis, const Value& index);
  Value mul(const Value& a, const Value& b);
  /// a / b of floats, as a times the reciprocal.
  Value over(const Value& a, const Value& b);
  /// Over one axis, which stays as 1.
  Value reduce(const std::string& op, const Value& x, int64_t axis);

private:
  std::string text_;
  int64_t next_ = 0;
  std::map<const graph::Value*, Value> values_;
  std::map<std::string, Value> constants_;
};

/// "array<i64: 1, 2>"
std::string arrayText(const std::vector<int64_t>& values);

} // namespace candela::exporter::tosa
