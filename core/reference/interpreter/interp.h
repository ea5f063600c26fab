#pragma once

#include <span>

#include "core/compiler/program/program.h"

namespace candela::reference {

/// Runs a Program on the oracle's arithmetic over addressed, poisoned memory: one flat arena per
/// space where offsets are planned, every byte tracked by the buffer that it was written through.
/// Reading a byte that nothing wrote, or that another buffer in its place was written over, writing
/// a constant or an input, or a view that leaves its buffer is a failure that names the
/// instruction, the buffer and the element.
struct InterpOptions {
  /// TEMP buffers lie at their planned offsets and may overlap; false: each on its own
  bool inPlaceArena = true;
  /// Two instructions that touch one byte, one of them writing it, in an order that no chain of
  /// waits sets, are a failure that names both. The Program must be free of loops.
  bool checkWaits = false;
};
/// inputs: one per INPUT, INOUT and STATE buffer, in order, with as many bytes; returns OUTPUT,
/// INOUT and STATE contents in order, every byte of which must have been written. A result has the
/// element type and dims of a view that covers its buffer; without one it is a row of elements of
/// its first view. Blocked layouts only where operands are all alike, in MATMUL, and in CONV2D and
/// POOL2D if windows do not move along blocks; CUSTOM and opaque views are refused (unsupported),
/// as is a Program of more than 2^26 executed instructions.
Result<std::vector<Tensor>> interpret(const program::Program& program,
                                      std::span<const Tensor> inputs,
                                      const InterpOptions& options = {});

} // namespace candela::reference
