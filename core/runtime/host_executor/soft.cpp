#include "core/runtime/host_executor/soft.h"

#include "core/runtime/host_executor/call.h"

namespace candela::runtime::host_executor {

Operand Call::resolve(const cdl_view_t& view) const {
  Operand operand;
  operand.elem = view.elem;
  operand.rank = view.rank;
  operand.start = view.offset;
  for (int d = 0; d < view.rank; ++d) {
    operand.dims[d] = view.dims[d];
    operand.strides[d] = view.strides[d];
  }
  if (loopValues)
    for (int l = 0; l < CDL_MAX_LOOP_NESTING; ++l)
      operand.start += view.iv_strides[l] * loopValues[l];
  operand.base = static_cast<char*>(buffers[view.buffer]);
  return operand;
}

cdl::Status Call::fail(cdl_code_t code, const std::string& text) const {
  std::string name = cdl::kindName(instr->kind);
  if (instr->provenance)
    name += std::string(" '") +
            cdl_get_string(image, cdl_get_provenance(image, instr->provenance)->node) + "'";
  return cdl::error(code, name + ": " + text);
}

cdl::Status Call::failElems() const {
  std::string elems;
  for (uint32_t i = 0; i < operands(); ++i)
    elems += cdl::elemName(input(i).elem) + std::string(", ");
  return fail(CDL_UNSUPPORTED, cdl::text("no row for function ", instr->fn, " on ", elems,
                                         "result ", cdl::elemName(output().elem)));
}

namespace {

/// The check of images compares the dims of views of one layout alone. Blocked ones run as they
/// lie, where elements keep to themselves.
bool takesLayouts(const Call& call) {
  const cdl_instr_t& instr = *call.instr;
  const uint16_t layout = cdl_get_output(call.image, &instr, 0)->layout;
  for (uint32_t i = 0; i < instr.inputs; ++i)
    if (cdl_get_input(call.image, &instr, i)->layout != layout) return false;
  const char shape = *cdl_kind_facts(instr.kind)->shape;
  return layout == 0 || shape == '-' ||
         (shape == '=' && instr.kind != CDL_KIND_SOFTMAX && instr.kind != CDL_KIND_NORM);
}

cdl::Status dispatch(const Call& call) {
  if (!takesLayouts(call))
    return call.fail(CDL_UNSUPPORTED, "soft does not run it on these layouts");
  switch (call.instr->kind) {
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
  case CDL_KIND_SCALED_MATMUL: return runScaledMatmul(call);
  case CDL_KIND_SORT: return runSort(call);
  default: return call.fail(CDL_UNSUPPORTED, "soft does not run this kind");
  }
}

} // namespace

cdl_code_t run(const cdl_image_t* image, uint32_t instr, const int64_t loopValues[2],
               void* const* buffers, const Workers* workers, cdl_error_t* error) {
  const Call call{image, cdl_get_instr(image, instr), loopValues, buffers, workers};
  return cdl::detail::guard(error, [&] { return dispatch(call); });
}

cdl_code_t runAll(const cdl_image_t* image, void* const* buffers, const Workers* workers,
                  cdl_error_t* error) {
  int64_t values[CDL_MAX_LOOP_NESTING] = {};
  cdl_code_t code = CDL_OK;
  for (uint32_t i = 1; i < image->instrs.count && code == CDL_OK;
       i = cdl_next_instr(image, i, values))
    code = run(image, i, values, buffers, workers, error);
  return code;
}

} // namespace candela::runtime::host_executor
