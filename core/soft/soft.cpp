#include "core/soft/soft.h"

#include <new>

#include "core/soft/call.h"

namespace candela::soft {
namespace {

cdl_code_t dispatch(const Call& call) {
  const cdl_instr_t& instr = *call.instr;
  if (instr.outputs != 1) return call.fail(CDL_UNSUPPORTED, "has %d results, not 1", instr.outputs);
  switch (instr.kind) {
  case CDL_KIND_COPY: return runCopy(call);
  case CDL_KIND_FILL: return runFill(call);
  case CDL_KIND_CONVERT:
  case CDL_KIND_BINARY:
  case CDL_KIND_COMPARE:
  case CDL_KIND_SELECT:
  case CDL_KIND_UNARY: return runBlockOp(call);
  case CDL_KIND_GATHER: return runGather(call);
  case CDL_KIND_SCATTER: return runScatter(call);
  case CDL_KIND_REDUCE: return runReduce(call);
  case CDL_KIND_MATMUL: return runMatmul(call);
  case CDL_KIND_RESCALE: return runRescale(call);
  case CDL_KIND_TABLE: return runTable(call);
  case CDL_KIND_ELEMENTWISE: return runElementwise(call);
  case CDL_KIND_SOFTMAX: return runSoftmax(call);
  case CDL_KIND_NORM: return runNorm(call);
  case CDL_KIND_ARG_REDUCE: return runArgReduce(call);
  default: return call.fail(CDL_UNSUPPORTED, "soft does not run this kind");
  }
}

// Instructions first .. end - 1, all inside of `loop` (0: none) at nesting `depth`.
cdl_code_t runBlock(const cdl_image_t* image, uint32_t first, uint32_t end, uint32_t loop, int depth,
                    int64_t values[CDL_MAX_LOOP_NESTING], void* const* buffers, cdl_error_t* error) {
  for (uint32_t i = first; i < end;) {
    uint32_t inner = cdl_get_instr(image, i)->loop;
    if (inner == loop) {
      const cdl_code_t code = run(image, i, values, buffers, error);
      if (code != CDL_OK) return code;
      ++i;
      continue;
    }
    while (inner != 0 && cdl_get_loop(image, inner)->parent != loop) inner = cdl_get_loop(image, inner)->parent;
    if (inner == 0 || depth >= CDL_MAX_LOOP_NESTING) return CDL_BAD_MODEL; // not an image that was checked
    const cdl_loop_t& region = *cdl_get_loop(image, inner);
    for (uint64_t iteration = 0; iteration < region.trip; ++iteration) {
      values[depth] = static_cast<int64_t>(iteration);
      const cdl_code_t code =
          runBlock(image, region.first, region.first + region.count, inner, depth + 1, values, buffers, error);
      if (code != CDL_OK) return code;
    }
    values[depth] = 0;
    i = region.first + region.count;
  }
  return CDL_OK;
}

} // namespace

bool supports(const cdl_image_t* image, uint32_t instr) {
  return dispatch({image, cdl_get_instr(image, instr), nullptr, nullptr, nullptr}) == CDL_OK;
}

cdl_code_t run(const cdl_image_t* image, uint32_t instr, const int64_t loopValues[2], void* const* buffers,
               cdl_error_t* error) {
  const Call call{image, cdl_get_instr(image, instr), loopValues, buffers, error};
  try {
    return dispatch(call);
  } catch (const std::bad_alloc&) { return call.fail(CDL_OUT_OF_MEMORY, "no memory for scratch"); }
}

cdl_code_t runAll(const cdl_image_t* image, void* const* buffers, cdl_error_t* error) {
  int64_t values[CDL_MAX_LOOP_NESTING] = {};
  return runBlock(image, 1, image->instrs.count, 0, 0, values, buffers, error);
}

} // namespace candela::soft
