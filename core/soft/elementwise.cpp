// The element-wise kinds that are one block function, and ELEMENTWISE.
#include "core/soft/expr.h"

namespace candela::soft {

cdl_code_t runBlockOp(const Call& call) {
  const Operand y = call.output();
  std::vector<Operand> in;
  uint8_t elems[3] = {};
  const int inputs = static_cast<int>(call.operands());
  if (inputs > 3) return call.fail(CDL_BAD_MODEL, "has %d inputs, at most 3", inputs);
  for (int i = 0; i < inputs; ++i) {
    in.push_back(call.input(static_cast<uint32_t>(i)));
    elems[i] = in.back().elem;
  }
  BlockOp op;
  if (!findBlockOp(call.instr->kind, call.instr->fn, elems, inputs, y.elem, call.attr(CDL_ATTR_SATURATE, 0) != 0, op))
    return call.failElems();
  for (int i = 0; i < inputs; ++i) {
    const char* dims = dimsText(in[static_cast<size_t>(i)]);
    if (!broadcastTo(in[static_cast<size_t>(i)], y))
      return call.fail(CDL_BAD_MODEL, "input %d has dims %s but the result has %s", i, dims, dimsText(y));
  }
  if (call.checkOnly()) return CDL_OK;
  mapBlocks(in, y, [&](const void* const* blocks, void* out, int64_t n) { op.run(op, blocks, out, n); });
  return CDL_OK;
}

cdl_code_t runElementwise(const Call& call) {
  const Operand y = call.output();
  if (!isArithmetic(y.elem)) return call.failElems();
  Expr expr;
  const cdl_code_t code = expr.bind(call, y, 0);
  if (code != CDL_OK || call.checkOnly()) return code;
  mapBlocks(expr.views(), y,
            [&](const void* const* blocks, void* out, int64_t n) { expr.evaluate(blocks, nullptr, out, n); });
  return CDL_OK;
}

} // namespace candela::soft
