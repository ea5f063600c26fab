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
  cdl_code_t code = CDL_OK;
  for (uint32_t i = 1; i < image->instrs.count && code == CDL_OK; i = cdl_next_instr(image, i, values))
    code = run(image, i, values, buffers, error);
  return code;
}

} // namespace candela::soft
