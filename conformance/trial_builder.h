#pragma once

#include "conformance/execute.h"
#include "conformance/random/random_ops.h"

namespace candela::conformance {

/// How a view lies in its buffer.
///   dense        row-major, contiguous, the whole buffer
///   offset       row-major and contiguous, behind 3 other elements
///   broadcast    stride 0 along the outermost dim of more than one element; operands only
///   broadcast_in stride 0 along the innermost dim; operands only
///   rows         rows contiguous, apart by 5 elements more than they are long
///   transposed   the strides of the reversed dims
///   negative     backwards along the innermost dim
///   strided      every second element along the innermost dim
///   overlap      neighbouring rows share all but one element; operands only
///   splat        stride 0 along every dim; operands only
///   reversed     backwards along every dim
///   rotated      the innermost dim outermost in memory
///   channel      stride 0 along every dim but the second, or the only one; operands only
///   columns      stride 0 along every dim but the innermost; operands only
inline constexpr const char* kViewForms[] = {
    "dense",   "offset",  "broadcast", "broadcast_in", "rows",    "transposed", "negative",
    "strided", "overlap", "splat",     "reversed",     "rotated", "channel",    "columns"};
/// Whether the form is another one than the dense one for these dims.
bool isForm(const Shape& dims, std::string_view form);

/// One instruction with a buffer for each view, and data for its runs.
class TrialBuilder {
public:
  /// The content of a buffer of `count` elements.
  using Fill = std::function<Tensor(int64_t count, random::Random& random)>;

  /// The address seeds the data: the same case has the same data in every run of the suite.
  TrialBuilder(std::string_view address, uint16_t kind, uint16_t fn = 0);

  TrialBuilder& input(Elem elem, Shape dims, std::string_view form, Fill fill);
  /// The same content in all runs.
  TrialBuilder& constant(Elem elem, Shape dims, std::string_view form, Fill fill);
  /// An output; where the form leaves gaps, or `initial` is given, the buffer is INOUT: gaps must
  /// stay as they were.
  TrialBuilder& output(Elem elem, Shape dims, std::string_view form = "dense", Fill initial = {});
  /// Another operand in the buffer of the last one, `shift` elements behind it.
  TrialBuilder& inputBeside(int64_t shift);
  /// An output in the buffer of an operand, `shift` elements behind it; 0: in place.
  TrialBuilder& outputIn(size_t operand, Elem elem, int64_t shift = 0);
  /// The outermost dims of all views, which have the same ones, become `for` regions around the
  /// instruction.
  TrialBuilder& loops(size_t depth);
  /// The instruction stands in a `for` region, each round of which has elements of its own in every
  /// buffer but constants, behind those of the round before. No two views share a buffer.
  TrialBuilder& rounds(int64_t count);
  /// The layout of the view that was added last, whose dims are physical ones.
  TrialBuilder& laidOut(program::Layout layout);
  TrialBuilder& trustSteps();
  TrialBuilder& attr(program::Attr attr);
  TrialBuilder& expr(program::Expr expr);

  /// Tries it out on the port. A program that does not verify fails the case: the suite is wrong
  /// then.
  CaseResult tryOut(Port& port, Judge judge = judge::primitiveBounds);

  /// Its program breaks a rule: the port must refuse it.
  CaseResult tryRefusal(Port& port);

private:
  Result<Trial> make(Port& port, Judge judge);
  program::View viewOf(Elem elem, const Shape& dims, std::string_view form, program::Role role,
                       const Fill& fill);
  /// Makes the buffer of an operand longer.
  void grow(uint32_t buffer, Elem elem, int64_t count);

  uint64_t seed_;
  program::Program program_;
  program::Instr instr_;
  std::vector<Fill> fills_; ///< of the buffers that are fed, in order
  std::vector<std::pair<Elem, int64_t>> fed_;
  size_t loops_ = 0;
  int64_t rounds_ = 1;
  bool trustsSteps_ = false;
};

/// Numbers of a kind, as randomData makes them.
TrialBuilder::Fill numbers(Elem elem, random::Data data);

/// "17x0x3" -> {17, 0, 3}; "scalar" -> {}.
Shape shapeOf(std::string_view text);
/// The seed of an address.
uint64_t seedOf(std::string_view address);

} // namespace candela::conformance
