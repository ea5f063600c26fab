#pragma once

#include "core/compiler/export/tosa/writer.h"

/// How ops are said in TOSA. Each function writes one and binds its results; it throws a Refusal
/// where there is no form.
namespace candela::exporter::tosa {

void writeOp(FunctionWriter& w, const graph::Node& node);

/// The value of an op that works element by element.
Value elementwise(FunctionWriter& w, graph::OpKind kind, const Values& operands);
/// How it is said, for the reference page.
std::string_view elementwiseForm(graph::OpKind kind);
/// Products of the last two dims of floats; the others broadcast.
Value product(FunctionWriter& w, const Value& a, const Value& b);
/// The last two dims change places.
Value transposed(FunctionWriter& w, const Value& x);
/// exp(x - max) / sum along an axis.
Value softmax(FunctionWriter& w, const Value& x, int64_t axis);
/// The sum over axes that stay as 1, times `factor`.
Value scaledSum(FunctionWriter& w, const Value& x, const std::vector<int64_t>& axes, double factor);

#define CANDELA_EXPORT(Kind, function, form)                                                       \
  void function(FunctionWriter& w, const graph::Node& node);
#include "core/compiler/export/tosa/ops.inc"
#undef CANDELA_EXPORT

} // namespace candela::exporter::tosa
