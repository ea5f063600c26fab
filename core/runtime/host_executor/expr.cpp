#include "core/runtime/host_executor/expr.h"

#include <algorithm>
#include <cstring>

namespace candela::runtime::host_executor {

Expr::Source Expr::bindOperand(const Call& call, const cdl_step_t& step,
                               const cdl_operand_t& operand) {
  if (operand.source == CDL_FROM_CONST) {
    Scratch<uint64_t> block(kBlock);
    const size_t bytes = std::max<size_t>(1, cdl_elem_bits(operand.elem) / 8);
    const bool isSigned = operand.elem == CDL_I4 || operand.elem == CDL_I2;
    const int bits = static_cast<int>(cdl_elem_bits(operand.elem));
    const uint64_t imm =
        isSigned ? static_cast<uint8_t>(cdl_packed_get_signed(&step.imm, 0, bits)) : step.imm;
    for (size_t i = 0; i < kBlock; ++i)
      std::memcpy(reinterpret_cast<char*>(block.data()) + i * bytes, &imm, bytes);
    constants_.push_back(std::move(block));
    return {CDL_FROM_CONST, static_cast<uint32_t>(constants_.size() - 1)};
  }
  if (operand.source == CDL_FROM_STEP) return {CDL_FROM_STEP, operand.index - first_};
  if (operand.source != CDL_FROM_VIEW) return {operand.source, operand.index};
  const auto known = std::find(viewInputs_.begin(), viewInputs_.end(), operand.index);
  const auto index = static_cast<uint32_t>(known - viewInputs_.begin());
  if (known == viewInputs_.end()) {
    viewInputs_.push_back(operand.index);
    views_.push_back(call.view(operand.index));
  }
  return {CDL_FROM_VIEW, index};
}

cdl::Status Expr::bind(const Call& call, uint8_t accElem) {
  return bind(call, accElem, call.instr->prologue,
              cdl_get_expr(call.image, call.instr->expr)->steps);
}

cdl::Status Expr::bind(const Call& call, uint8_t accElem, uint32_t first, uint32_t end) {
  const cdl_expr_t* expr = cdl_get_expr(call.image, call.instr->expr);
  first_ = first;
  for (uint32_t s = first; s < end; ++s) {
    const cdl_step_t& record = *cdl_get_step(call.image, expr->first_step + s);
    Step step{};
    step.operands = record.operands;
    uint8_t elems[4] = {};
    for (int k = 0; k < step.operands; ++k) {
      const cdl_operand_t& operand = record.in[k];
      if (operand.source == CDL_FROM_ACC && operand.elem != accElem)
        return call.fail(CDL_BAD_MODEL, cdl::text("step ", s, " reads the accumulator as ",
                                                  cdl::elemName(operand.elem), ", but it is ",
                                                  cdl::elemName(accElem)));
      elems[k] = operand.elem;
      step.in[k] = bindOperand(call, record, operand);
    }
    const bool isRescale = record.kind == CDL_KIND_RESCALE;
    if (isRescale
            ? !findRescale(elems[0], record.elem, record.imm, step.op)
            : !findBlockOp(record.kind, record.fn, elems, record.elem, record.flags & 1, step.op))
      return call.fail(CDL_UNSUPPORTED,
                       cdl::text("step ", s, ": ", cdl::kindName(record.kind), " of function ",
                                 record.fn, " gives no ", cdl::elemName(record.elem), " from ",
                                 cdl::elemName(elems[0])));
    if (s + 1 < end) step.value.resize(kBlock);
    steps_.push_back(std::move(step));
  }
  return cdl::ok();
}

const void* Expr::blockOf(const Source& source, const void* const* views, const void* acc) const {
  switch (source.from) {
  case CDL_FROM_ACC: return acc;
  case CDL_FROM_VIEW: return views[source.index];
  case CDL_FROM_STEP: return steps_[source.index].value.data();
  default: return constants_[source.index].data();
  }
}

void Expr::evaluate(const void* const* views, const void* acc, void* out, int64_t n) {
  for (size_t s = 0; s < steps_.size(); ++s) {
    Step& step = steps_[s];
    const void* in[4] = {};
    for (int k = 0; k < step.operands; ++k) {
      in[k] = blockOf(step.in[k], views, acc);
    }
    step.op.run(step.op, in, s + 1 < steps_.size() ? step.value.data() : out, n);
  }
}

cdl::Status Finisher::bind(const Call& call, uint8_t accElem) {
  result_ = call.output();
  hasExpr_ = call.instr->expr != 0 &&
             cdl_get_expr(call.image, call.instr->expr)->steps > call.instr->prologue;
  scratch_.resize(kBlock);
  if (!hasExpr_) return cdl::ok();
  if (cdl::Status status = expr_.bind(call, accElem); !status.isOk()) return status;
  for (const Operand& view : expr_.views()) {
    readers_.emplace_back(view);
    readers_.back().setStride(view.strides[view.rank - 1]);
  }
  pointers_.resize(readers_.size());
  return cdl::ok();
}

void Finisher::finish(const int64_t* index, int64_t first, const void* acc, int64_t n) {
  const auto position = [&](const Operand& operand) {
    int64_t at = operand.start + first * operand.strides[operand.rank - 1];
    for (int d = 0; d < operand.rank - 1; ++d) at += index[d] * operand.strides[d];
    return at;
  };
  const int64_t at = position(result_), stride = result_.strides[result_.rank - 1];
  const void* values = acc;
  if (hasExpr_) {
    for (size_t k = 0; k < readers_.size(); ++k)
      pointers_[k] = readers_[k].read(position(expr_.views()[k]), n);
    void* target = stride == 1 ? result_.address(at) : static_cast<void*>(scratch_.data());
    expr_.evaluate(pointers_.data(), acc, target, n);
    if (stride == 1) return;
    values = target;
  }
  scatterBlock(result_, at, stride, n, values);
}

uint8_t accumulatorElem(const Call& call) {
  const cdl_expr_t* expr = cdl_get_expr(call.image, call.instr->expr);
  if (call.instr->expr == 0 || call.attr(CDL_ATTR_ACCUMULATE, 0) != 0) return call.output().elem;
  for (uint32_t s = 0; s < expr->steps; ++s) {
    const cdl_step_t& step = *cdl_get_step(call.image, expr->first_step + s);
    for (int k = 0; k < step.operands; ++k)
      if (step.in[k].source == CDL_FROM_ACC) return step.in[k].elem;
  }
  return 0;
}

} // namespace candela::runtime::host_executor
