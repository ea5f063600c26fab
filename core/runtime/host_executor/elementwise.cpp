// What goes element by element: COPY and FILL, the kinds that are one block function, and
// ELEMENTWISE.
#include <algorithm>
#include <cstring>

#include "core/runtime/host_executor/expr.h"
#include "core/runtime/host_executor/map_blocks.h"

namespace candela::runtime::host_executor {

/// COPY and FILL go by the size of the element, whatever it means.
cdl::Status runCopy(const Call& call) {
  const Operand x = call.input(0), y = call.output();
  const size_t bytes = isPackedElem(y.elem) ? 1 : cdl_elem_bits(y.elem) / 8;
  if (x.elem != y.elem) return call.failElems();
  mapBlocks(call.workers, {x}, y, [=](const void* const* blocks, void* out, int64_t n) {
    std::memcpy(out, blocks[0], static_cast<size_t>(n) * bytes);
  });
  return cdl::ok();
}

cdl::Status runFill(const Call& call) {
  const Operand y = call.output();
  if (cdl_elem_bits(y.elem) < 8) return call.failElems();
  const int64_t bits = call.attr(CDL_ATTR_VALUE, 0);
  withBits(y.elem, [&]<class T>(Tag<T>) {
    mapBlocks(call.workers, {}, y, [=](const void* const*, void* out, int64_t n) {
      std::fill_n(static_cast<T*>(out), n, static_cast<T>(bits));
    });
  });
  return cdl::ok();
}

cdl::Status runBlockOp(const Call& call) {
  const Operand y = call.output();
  Scratch<Operand> in;
  uint8_t elems[3] = {};
  for (uint32_t i = 0; i < call.operands(); ++i) {
    in.push_back(call.input(i));
    elems[i] = in.back().elem;
  }
  BlockOp op;
  if (!findBlockOp(call.instr->kind, call.instr->fn, elems, y.elem,
                   call.attr(CDL_ATTR_SATURATE, 0) != 0, op))
    return call.failElems();
  mapBlocks(call.workers, in, y,
            [op](const void* const* blocks, void* out, int64_t n) { op.run(op, blocks, out, n); });
  return cdl::ok();
}

cdl::Status runElementwise(const Call& call) {
  const Operand y = call.output();
  if (!isArithmetic(y.elem)) return call.failElems();
  Expr expr;
  if (cdl::Status status = expr.bind(call, 0); !status.isOk()) return status;
  const Scratch<Operand> views = expr.views();
  mapBlocks(call.workers, views, y,
            [expr = std::move(expr)](const void* const* blocks, void* out, int64_t n) mutable {
              expr.evaluate(blocks, nullptr, out, n);
            });
  return cdl::ok();
}

} // namespace candela::runtime::host_executor
