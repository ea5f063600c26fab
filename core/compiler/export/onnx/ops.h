#pragma once

#include "core/compiler/export/onnx/writer.h"

/// How ops are said in ONNX. Each function writes the nodes of one and binds its results; it throws
/// a Refusal where there is no form.
namespace candela::exporter::onnx {

void writeOp(GraphWriter& w, const graph::Node& node);

/// The value of an op that works element by element, of operands in the order of its record.
/// Throws where its kind is none of those.
Term elementwise(GraphWriter& w, graph::OpKind kind, const Terms& operands);
/// How it is said, for the reference page.
std::string_view elementwiseForm(graph::OpKind kind);
/// x in another type, as CONVERT says it: `mode` trunc, rne or floor where a float becomes an
/// integer.
Term converted(GraphWriter& w, const Term& x, Elem to, std::string_view mode, bool saturate);
/// The attributes of a node that has those of ONNX.
Attributes attributesOf(const graph::Node& node);
/// The operator that the record names, with the node's operands and attributes.
Term namedOp(GraphWriter& w, const graph::Node& node, const Terms& operands);
/// x flat, at the places offset + sum(i[d] * strides[d]).
Term takeAffine(GraphWriter& w, const Term& x, int64_t offset, const Shape& dims,
                const std::vector<int64_t>& strides);
/// The operands of a RESCALE; without a second product `b` is absent.
struct Rescaled {
  Term a, multiplier, shift, zero, b, bMultiplier;
  int64_t leftShift = 0, bLeftShift = 0;
  __int128 low, high;
  Elem to;
};
Term rescaled(GraphWriter& w, const Rescaled& rescale);

// By families, as the records have them.
#define CANDELA_EXPORT(Kind, function, form) void function(GraphWriter& w, const graph::Node& node);
#include "core/compiler/export/onnx/ops.inc"
#undef CANDELA_EXPORT

} // namespace candela::exporter::onnx
