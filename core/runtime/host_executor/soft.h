// The portable executor: runs instructions of checked Program images on mapped memory.
#pragma once

#include "candela/cdl.h"

namespace candela::runtime::host_executor {

/// Every row that soft runs, as data. A row with elem_count 0 (ELEMENTWISE) takes any operands;
/// what its expression may hold stands in steps_mask. Operand class AFFINE throughout. Static
/// lifetime, any thread.
const cdl_capabilities_t& capabilities();

/// Threads for parts of an instruction; the results do not depend on them.
struct Workers {
  const cdl_host_t* host; ///< whose parallel_for it is
  uint32_t threads;       ///< how many work at the same time, the caller among them; at least 1
  /// Steps of an inner loop that are worth a part of their own: some microseconds. Tests cut finer.
  int64_t partSteps = 1 << 14;
};

/// Runs one instruction of an image that cdl_image_check took. buffers[i] is the host address of
/// image buffer i ([0] unused) with at least its bytes, aligned to its elements. loopValues: the
/// values of the enclosing loop variables, outer first; may be null outside of loops. An output
/// view may equal an input view of an element-wise instruction; other overlaps of outputs with
/// inputs are the caller's fault. `workers` null: on the calling thread alone. Allocates scratch of
/// at most a few MiB a thread. Any thread. Errors: UNSUPPORTED (element types, kinds, layouts),
/// BAD_MODEL (values), OUT_OF_MEMORY, with text in `error`.
cdl_code_t run(const cdl_image_t* image, uint32_t instr, const int64_t loopValues[2],
               void* const* buffers, const Workers* workers, cdl_error_t* error);

/// Runs all instructions in order, `for` regions too. Stops at the first error.
cdl_code_t runAll(const cdl_image_t* image, void* const* buffers, const Workers* workers,
                  cdl_error_t* error);

} // namespace candela::runtime::host_executor
