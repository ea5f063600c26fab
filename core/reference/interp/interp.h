#ifndef CANDELA_CORE_REFERENCE_INTERP_INTERP_H
#define CANDELA_CORE_REFERENCE_INTERP_INTERP_H

#include <span>

#include "core/program/program.h"

namespace candela::reference {

/// Runs a Program on the oracle's arithmetic over addressed, poisoned memory: one flat arena per space where offsets are
/// planned, every byte tracked as written or not. Reading a byte that nothing wrote, writing a constant or an input, or a
/// view that leaves its buffer is a failure that names the instruction, the buffer and the element.
struct InterpOptions {
  bool inPlaceArena = true; ///< TEMP buffers lie at their planned offsets and may overlap; false: each on its own
};
/// inputs: one per INPUT, INOUT and STATE buffer, in order; returns OUTPUT, INOUT and STATE contents in order.
Result<std::vector<Tensor>> interpret(const program::Program& program, std::span<const Tensor> inputs,
                                      const InterpOptions& options = {});

} // namespace candela::reference

#endif
