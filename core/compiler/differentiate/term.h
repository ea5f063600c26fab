#pragma once

#include "core/compiler/graph/graph.h"

/// Formulas over Graph ops, in which the rules are written. What cannot be built is thrown as a
/// Failure, which differentiate() turns back into a Status. import/term.h has the same notation
/// over import's Builder, which folds constants and names nodes after operators of a model; here
/// nodes are added to a Graph as they are.
namespace candela::differentiate {

using graph::Attrs, graph::Node, graph::OpKind, graph::Value;

struct Failure {
  Status status;
};

/// The value of a Result, or its Status is thrown.
template <typename T> T need(Result<T> result) {
  if (!result) throw Failure{result.status()};
  return std::move(result).value();
}

/// Where new nodes go: behind all others of a graph, on behalf of one node at a time.
struct Writer {
  graph::Graph& graph;
  graph::Provenance provenance = {};
};

/// A value of the Graph with the Writer that builds on it. Never null.
class Term {
public:
  Term(Writer& writer, Value* value) : writer_(&writer), value_(value) {}

  Value* value() const { return value_; }
  Writer& writer() const { return *writer_; }
  Elem elem() const { return value_->type.elem; }
  Shape shape() const { return value_->type.shape(); }
  int64_t rank() const { return value_->type.rank(); }
  /// axis may count from the end
  int64_t dim(int64_t axis) const { return value_->type.dim(static_cast<int>(axis)); }
  int64_t count() const { return value_->type.count(); }

  Term cast(Elem to) const;
  Term reshape(const Shape& shape) const;
  Term expand(const Shape& shape) const;
  Term transpose(const std::vector<int64_t>& perm) const;
  /// The last two dims in the other order.
  Term transposed() const;
  /// Elements first, first + step, ... along one axis.
  Term slice(int64_t axis, int64_t first, int64_t count, int64_t step = 1) const;
  /// Filled around with zeros; a negative width crops.
  Term pad(const std::vector<int64_t>& lo, const std::vector<int64_t>& hi) const;
  /// Sums over what broadcasting from `shape` repeated.
  Term sumTo(const Shape& shape) const;

  /// A number in this term's type: a scalar.
  Term number(double value) const;

private:
  Writer* writer_;
  Value* value_;
};

/// Any op of one result.
Term make(OpKind kind, const std::vector<Term>& operands, Attrs attrs = {});
/// The first `count` results.
std::vector<Term> makeAll(OpKind kind, const std::vector<Term>& operands, Attrs attrs, int count);

// Element by element; operands broadcast. A plain number takes the type of the term beside it.
#define CANDELA_TERM(name, Kind)                                                                   \
  inline Term name(const Term& a, const Term& b) { return make(OpKind::Kind, {a, b}); }            \
  inline Term name(const Term& a, double b) { return make(OpKind::Kind, {a, a.number(b)}); }       \
  inline Term name(double a, const Term& b) { return make(OpKind::Kind, {b.number(a), b}); }
CANDELA_TERM(operator+, Add)
CANDELA_TERM(operator-, Sub)
CANDELA_TERM(operator*, Mul)
CANDELA_TERM(operator/, Div)
CANDELA_TERM(pow, Pow)
CANDELA_TERM(maximum, Max)
CANDELA_TERM(minimum, Min)
CANDELA_TERM(equal, Equal)
CANDELA_TERM(less, Less)
CANDELA_TERM(bitAnd, BitAnd)
#undef CANDELA_TERM
#define CANDELA_TERM(name, Kind)                                                                   \
  inline Term name(const Term& x) { return make(OpKind::Kind, {x}); }
CANDELA_TERM(operator-, Neg)
CANDELA_TERM(sqrt, Sqrt)
CANDELA_TERM(reciprocal, Reciprocal)
CANDELA_TERM(exp, Exp)
CANDELA_TERM(log, Log)
CANDELA_TERM(erf, Erf)
CANDELA_TERM(sin, Sin)
CANDELA_TERM(cos, Cos)
CANDELA_TERM(sinh, Sinh)
CANDELA_TERM(cosh, Cosh)
CANDELA_TERM(roundEven, RoundEven)
#undef CANDELA_TERM

inline Term select(const Term& condition, const Term& a, const Term& b) {
  return make(OpKind::Select, {condition, a, b});
}
/// a where the condition holds, else 0.
inline Term where(const Term& condition, const Term& a) {
  return select(condition, a, a.number(0));
}
inline Term logicalNot(const Term& condition) { return equal(condition, 0); }
/// 1 where the condition holds, else 0, in a float type.
Term indicator(const Term& condition, Elem elem);

/// One of ReduceSum, ReduceMean, ReduceMax, ReduceMin, ReduceProd over axes that stay as 1, or go.
Term reduce(OpKind kind, const Term& x, const std::vector<int64_t>& axes, bool keep = true);
inline Term sum(const Term& x, const std::vector<int64_t>& axes, bool keep = true) {
  return reduce(OpKind::ReduceSum, x, axes, keep);
}
/// Of all elements: a scalar.
Term sumOfAll(const Term& x);
/// Products of the last two dims; the others broadcast.
inline Term matmul(const Term& a, const Term& b) { return make(OpKind::Matmul, {a, b}); }
/// The elements of `updates` [o, k, i] added into `x` [o, n, i] at index [k]; those outside are
/// not.
Term putAdd(const Term& x, const Term& index, const Term& updates);
/// The elements of a row-major x at these places, in the shape of `index`; every place is inside.
Term takeFlat(const Term& x, const Term& index);
/// The same type and shape, every element zero.
Term zerosLike(const Term& x);

// Constants.
Term full(Writer& writer, double value, const Shape& shape, Elem elem);
Term constant(Writer& writer, const std::vector<int64_t>& values, const Shape& shape,
              Elem elem = Elem::i64_);
Term constant(Writer& writer, const std::vector<double>& values, const Shape& shape, Elem elem);

/// The integers from `first` to behind `last`.
std::vector<int64_t> range(int64_t first, int64_t last);

} // namespace candela::differentiate
