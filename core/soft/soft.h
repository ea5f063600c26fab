// The portable executor: runs checked Program images on mapped memory, one instruction at a time.
#pragma once

#include "candela/cdl.h"

namespace candela::soft {

/// Every row that soft runs, as data. A row with elem_count 0 (ELEMENTWISE) takes any operands;
/// what its expression may hold stands in steps_mask. Operand class AFFINE throughout. Static
/// lifetime, any thread.
const cdl_capabilities_t& capabilities();

/// True when soft can run instruction `instr` of a checked image: element types, shapes and
/// attributes agree.
bool supports(const cdl_image_t* image, uint32_t instr);

/// Runs one instruction of a checked image. buffers[i] is the host address of image buffer i ([0]
/// unused) with at least its bytes, aligned to its elements. loopValues: the values of the
/// enclosing loop variables, outer first; may be null outside of loops. An output view may equal an
/// input view of an element-wise instruction; other overlaps of outputs with inputs are the
/// caller's fault. Allocates scratch of at most a few MiB. Any thread. Errors: BAD_MODEL (shapes,
/// attributes), UNSUPPORTED (element types, kinds), OUT_OF_MEMORY, with text in `error`.
cdl_code_t run(const cdl_image_t* image, uint32_t instr, const int64_t loopValues[2], void* const* buffers,
               cdl_error_t* error);

/// Runs all instructions in order, `for` regions too. Stops at the first error.
cdl_code_t runAll(const cdl_image_t* image, void* const* buffers, cdl_error_t* error);

} // namespace candela::soft
