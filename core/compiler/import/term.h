#pragma once

#include "core/compiler/import/node_context.h"

/// Formulas over Graph ops, for operators that are compositions of others: an adapter writes `x *
/// sigmoid(x)`. What cannot be built is thrown as a Failure, which OperatorImporter::import() turns
/// back into a Status.
namespace candela::import {

struct Failure {
  Status status;
};

/// The value of a Result, or its Status is thrown.
template <typename T> T need(Result<T> result) {
  if (!result) throw Failure{result.status()};
  return std::move(result).value();
}
inline void need(const Status& status) {
  if (!status) throw Failure{status};
}

/// A value of the Graph with the Builder that made it. Never null.
class Term {
public:
  Term(Builder& build, Value* value) : build_(&build), value_(value) {}
  Term(Builder& build, Result<Value*> value) : build_(&build), value_(need(std::move(value))) {}

  operator Result<Value*>() const { return value_; }
  Value* value() const { return value_; }
  Builder& build() const { return *build_; }
  Elem elem() const { return value_->type.elem; }
  Shape shape() const { return value_->type.shape(); }
  int64_t rank() const { return value_->type.rank(); }
  /// axis may count from the end
  int64_t dim(int64_t axis) const { return value_->type.dim(static_cast<int>(axis)); }
  int64_t count() const { return value_->type.count(); }
  std::string text() const { return value_->type.text(); } ///< the type's

  Term cast(Elem to) const { return {*build_, build_->cast(value_, to)}; }
  Term reshape(const Shape& shape) const { return {*build_, build_->reshape(value_, shape)}; }
  Term expand(const Shape& shape) const { return {*build_, build_->expand(value_, shape)}; }
  Term transpose(const std::vector<int64_t>& perm) const;
  /// Elements first, first + step, ... along one axis.
  Term slice(int64_t axis, int64_t first, int64_t count, int64_t step = 1) const;
  Term squeeze(int64_t axis) const;
  Term unsqueeze(int64_t axis) const; ///< a dim of 1 that becomes dim `axis` of the result
  /// Filled around with `value`; a negative width crops.
  Term pad(const std::vector<int64_t>& lo, const std::vector<int64_t>& hi, double value = 0) const;

  /// A number in this term's type: a scalar.
  Term number(double value) const { return {*build_, build_->scalar(value, elem())}; }

private:
  Builder* build_;
  Value* value_;
};

/// Any op of one result.
Term make(OpKind kind, const std::vector<Term>& operands, Attrs attrs = {});

// Element by element; operands broadcast. A plain number takes the type of the term beside it.
#define CANDELA_TERM(name, Kind)                                                                   \
  inline Term name(const Term& a, const Term& b) { return make(OpKind::Kind, {a, b}); }            \
  inline Term name(const Term& a, double b) { return make(OpKind::Kind, {a, a.number(b)}); }       \
  inline Term name(double a, const Term& b) { return make(OpKind::Kind, {b.number(a), b}); }
CANDELA_TERM(operator+, Add)
CANDELA_TERM(operator-, Sub)
CANDELA_TERM(operator*, Mul)
CANDELA_TERM(operator/, Div)
CANDELA_TERM(min, Min)
CANDELA_TERM(max, Max)
CANDELA_TERM(pow, Pow)
CANDELA_TERM(rem, Rem)
CANDELA_TERM(bitAnd, BitAnd)
CANDELA_TERM(bitOr, BitOr)
CANDELA_TERM(bitXor, BitXor)
CANDELA_TERM(shiftLeft, ShiftLeft)
CANDELA_TERM(shiftRight, ShiftRight)
CANDELA_TERM(equal, Equal)
CANDELA_TERM(less, Less)
#undef CANDELA_TERM
#define CANDELA_TERM(name, Kind)                                                                   \
  inline Term name(const Term& x) { return make(OpKind::Kind, {x}); }
CANDELA_TERM(operator-, Neg)
CANDELA_TERM(abs, Abs)
CANDELA_TERM(floor, Floor)
CANDELA_TERM(ceil, Ceil)
CANDELA_TERM(sqrt, Sqrt)
CANDELA_TERM(reciprocal, Reciprocal)
CANDELA_TERM(exp, Exp)
CANDELA_TERM(log, Log)
CANDELA_TERM(tanh, Tanh)
CANDELA_TERM(sigmoid, Sigmoid)
CANDELA_TERM(erf, Erf)
CANDELA_TERM(trunc, Trunc)
CANDELA_TERM(roundEven, RoundEven)
CANDELA_TERM(log1p, Log1p)
CANDELA_TERM(expm1, Expm1)
CANDELA_TERM(sin, Sin)
CANDELA_TERM(cos, Cos)
CANDELA_TERM(tan, Tan)
CANDELA_TERM(asin, Asin)
CANDELA_TERM(acos, Acos)
CANDELA_TERM(atan, Atan)
CANDELA_TERM(relu, Relu)
#undef CANDELA_TERM

inline Term select(const Term& condition, const Term& a, const Term& b) {
  return make(OpKind::Select, {condition, a, b});
}
inline Term select(const Term& condition, const Term& a, double b) {
  return select(condition, a, a.number(b));
}
inline Term select(const Term& condition, double a, const Term& b) {
  return select(condition, b.number(a), b);
}
// Of bool terms.
inline Term logicalNot(const Term& x) { return equal(x, 0); }
inline Term logicalAnd(const Term& a, const Term& b) { return bitAnd(a, b); }
inline Term logicalOr(const Term& a, const Term& b) { return bitOr(a, b); }
/// a < b or a = b: false where either is NaN.
inline Term lessOrEqual(const Term& a, const Term& b) { return logicalOr(less(a, b), equal(a, b)); }

/// One of ReduceSum, ReduceMean, ReduceMax, ReduceMin, ReduceProd over axes that stay as 1, or go.
Term reduce(OpKind kind, const Term& x, const std::vector<int64_t>& axes, bool keep = true);
/// The integer part of x in an integer type; what is out of its range becomes the nearest limit.
inline Term saturated(const Term& x, Elem to) {
  return x.elem() == to ? x : make(OpKind::Cast, {x}, {{"to", to}, {"saturate", int64_t(1)}});
}
/// Products of the last two dims; the others broadcast.
inline Term matmul(const Term& a, const Term& b) { return make(OpKind::Matmul, {a, b}); }
inline Term softmax(const Term& x, int64_t axis = -1) {
  return make(OpKind::Softmax, {x}, {{"axis", axis}});
}
Term logSoftmax(const Term& x, int64_t axis);
inline Term concat(const std::vector<Term>& pieces, int64_t axis) {
  return make(OpKind::Concat, pieces, {{"axis", axis}});
}
/// x in the type that formulas of several steps compute in: f32 for 16-bit floats, so that they
/// round once.
inline Term widened(const Term& x) {
  return x.elem() == Elem::f16_ || x.elem() == Elem::bf16_ ? x.cast(Elem::f32_) : x;
}
/// The elements of a row-major x at these places, in the shape of `index`; every place is inside.
Term takeFlat(const Term& x, const Term& index);

// Constants.
Term constant(Builder& build, const std::vector<int64_t>& values, const Shape& shape,
              Elem elem = Elem::i64_);
Term constant(Builder& build, const std::vector<double>& values, const Shape& shape, Elem elem);
Term full(Builder& build, double value, const Shape& shape, Elem elem);
/// 0, 1, ... along the one dim of `count`.
Term iota(Builder& build, int64_t count, Elem elem = Elem::i64_);

// What an adapter reads.
/// A required input.
inline Term termOf(const NodeContext& context, size_t input) {
  return {context.build, context.input(input)};
}
template <typename T> T attrOf(NodeContext& context, const std::string& name, T fallback) {
  return need(context.attr<T>(name, std::move(fallback)));
}
/// What weighted sums of elements of a type are made in: at least f32.
inline Elem weightedElem(Elem elem) {
  return elem == Elem::f64_ || (isInteger(elem) && elemBits(elem) > 16) ? Elem::f64_ : Elem::f32_;
}

/// A list attribute of windows, with as many values as asked for, each from `least` to 2^31-1.
std::vector<int64_t> perDim(NodeContext& context, const char* name, size_t count, int64_t fallback,
                            int64_t least);
/// The one element of an operand that must be known at import, of any type.
double knownNumber(NodeContext& context, size_t input, const char* what);

} // namespace candela::import
