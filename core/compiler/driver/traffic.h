#pragma once

#include "core/compiler/driver/pipeline.h"
#include "core/compiler/program/report/traffic.h"

namespace candela::driver {

/// What one instruction for each ONNX node of an imported graph, before any pass, would move: each
/// reads every operand and writes every result once, by its logical bytes. Nodes of a graph that
/// import made of one ONNX node count as that one; what it computes from constants alone is a
/// constant, which import could have folded. A `loop` counts its operands and results, once.
program::report::Traffic graphTraffic(const graph::Graph& graph);

/// Bytes of the value in each buffer of a part's Program, without the padding of its layout.
std::vector<uint64_t> contentBytes(const LoweredPart& part);

} // namespace candela::driver
