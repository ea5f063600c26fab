#pragma once

#include <functional>

#include "core/compiler/program/program.h"
#include "core/reference/interpreter/memory.h"
#include "core/reference/kinds.h"

/// One instruction of the interpreter.
namespace candela::reference::interpreter {

/// What one instruction sees: its views, decoded, and where results go. Reading keeps the first
/// failure, so that the kinds read like their definitions.
class Call {
public:
  Call(const program::Program& program, const program::Instr& instr,
       const int64_t iv[CDL_MAX_LOOP_NESTING], Memory& memory)
      : instr(instr), program_(program), iv_(iv), memory_(memory) {}

  const program::Instr& instr;
  /// The elements, dense.
  Array read(const program::View& view);
  Array input(size_t i) { return read(instr.inputs[i]); }
  /// The operand that the first steps of the expr compute, rounded to their type.
  Array prologue();
  /// An operand by its logical dims, blocks rounded up. Fails when its buffer has a halo that does
  /// not hold the fill.
  Array logicalInput(size_t i);
  /// An optional operand: `otherwise` without it.
  Array input(size_t i, Array otherwise) { return i < instr.operandCount() ? input(i) : otherwise; }
  /// Operand i by its logical dims, less its zero point, which is operand i + 2.
  Array withoutZero(size_t i);
  bool flag(uint16_t attr) const { return instr.intAttr(attr, 0) != 0; }
  double floatAttr(uint16_t id, double otherwise) const;
  /// One element of a view, for the kinds that do not read all of it.
  Scalar readAt(const program::View& view, std::initializer_list<int64_t> index);
  /// Where a contraction or reduction sums up: what output 0 holds when it accumulates, else 0 of
  /// the type that the instruction's own result has. By logical dims.
  Array accumulator();
  /// Writes one element. Elements that others of this instruction read are not
  /// written: finish() is.
  void writeAt(const program::View& view, std::initializer_list<int64_t> index,
               const Scalar& value);
  /// Writes all of output 0: values of the accumulator's type by logical dims, 0 where blocks have
  /// more, through the epilogue when there is one.
  void finish(const Array& values);
  /// Writes all of an output, element type as in the view.
  void write(const Array& values, size_t output = 0);
  /// Writes what `formula` makes of an array for output 0, unless reading failed.
  template <typename Formula> void compute(Formula formula) {
    Array y(instr.outputs[0].elem, instr.outputs[0].dims);
    if (!failed()) formula(y);
    write(y);
  }
  void fail(Status status) {
    if (status_) status_ = std::move(status);
  }
  bool failed() const { return !status_; }
  const Status& status() const { return status_; }
  /// Results lie apart from operands, but for elements that are read and written at the same index.
  void checkOverlaps();

private:
  int64_t elementOf(const program::View& view, const int64_t* index) const;
  /// Calls visit(dense index, element in the buffer) for every element.
  void forEach(const program::View& view, const std::function<void(int64_t, int64_t)>& visit) const;
  /// The bits of an element of the view's buffer; 0 after a failure.
  uint64_t load(const program::View& view, int64_t element);
  void checkHalo(const program::View& view);
  bool sameElements(const program::View& a, const program::View& b) const;
  /// What an expression makes of `acc` and of the views that it reads, over `dims`.
  Array epilogue(const Array& values);
  Array each(const program::Expr& expr, Elem elem, const Shape& dims, const Array& acc);

  const program::Program& program_;
  const int64_t* iv_;
  Memory& memory_;
  Status status_;
};

/// The extents by logical dim, blocks rounded up.
Shape logicalDims(const program::View& view);
/// The same elements by index; what `dims` have more is 0.
Array resized(const Array& values, const Shape& dims);

/// One value of an expr: `acc` and the views' elements at one index.
Scalar evaluate(const program::Expr& expr, const Scalar& acc,
                const std::function<Scalar(size_t view)>& view);

/// Each element alone, in any order: in place is fine, and so are layouts when the operands are all
/// alike.
bool isElementwise(uint16_t kind);

/// Runs the instruction; failures stay in the call.
void run(Call& call);

} // namespace candela::reference::interpreter
