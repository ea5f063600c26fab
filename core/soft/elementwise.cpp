// The element-wise kinds that are one block function, and ELEMENTWISE.
#include "core/soft/expr.h"

namespace candela::soft {

cdl::Status runBlockOp(const Call& call) {
  const Operand y = call.output();
  std::vector<Operand> in;
  uint8_t elems[3] = {};
  for (uint32_t i = 0; i < call.operands(); ++i) {
    in.push_back(call.input(i));
    elems[i] = in.back().elem;
  }
  BlockOp op;
  if (!findBlockOp(call.instr->kind, call.instr->fn, elems, y.elem, call.attr(CDL_ATTR_SATURATE, 0) != 0, op))
    return call.failElems();
  mapBlocks(in, y, [&](const void* const* blocks, void* out, int64_t n) { op.run(op, blocks, out, n); });
  return cdl::ok();
}

cdl::Status runElementwise(const Call& call) {
  const Operand y = call.output();
  if (!isArithmetic(y.elem)) return call.failElems();
  Expr expr;
  if (cdl::Status status = expr.bind(call, 0); !status.isOk()) return status;
  mapBlocks(expr.views(), y,
            [&](const void* const* blocks, void* out, int64_t n) { expr.evaluate(blocks, nullptr, out, n); });
  return cdl::ok();
}

} // namespace candela::soft
