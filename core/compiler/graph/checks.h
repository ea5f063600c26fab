#pragma once

#include "core/compiler/graph/graph.h"

/// What inference, the verifier and the text forms share; not for other rooms.
namespace candela::graph {

/// "conv 'Conv_12'", or "conv" of a node without a name.
std::string nodeText(const Node& node);

/// Attributes against the record: known, of the record's type, in the record's numeric range, the
/// required ones there.
Status checkAttributes(const Node& node);

/// An impossible shape, quantization or layout. `what` names the value in the failure.
Status checkType(const TensorType& type, std::string_view what);

/// Whether a declared type agrees with the inferred one: element type and dims. Quantization and
/// layout are the business of those who put them there.
bool agrees(const TensorType& declared, const TensorType& inferred);

} // namespace candela::graph
