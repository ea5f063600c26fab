#include "core/soft/call.h"

namespace candela::soft {

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
    for (int l = 0; l < CDL_MAX_LOOP_NESTING; ++l) operand.start += view.iv_strides[l] * loopValues[l];
  operand.base = static_cast<char*>(buffers[view.buffer]);
  return operand;
}

cdl::Status Call::fail(cdl_code_t code, const std::string& text) const {
  std::string name = cdl::kindName(instr->kind);
  if (instr->provenance)
    name += std::string(" '") + cdl_get_string(image, cdl_get_provenance(image, instr->provenance)->node) + "'";
  return cdl::error(code, name + ": " + text);
}

cdl::Status Call::failElems() const {
  std::string elems;
  for (uint32_t i = 0; i < operands(); ++i) elems += cdl::elemName(input(i).elem) + std::string(", ");
  return fail(CDL_UNSUPPORTED, "no row for function " + std::to_string(instr->fn) + " on " + elems + "result " +
                                   cdl::elemName(output().elem));
}

} // namespace candela::soft
