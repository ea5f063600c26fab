#include "core/soft/expr.h"

#include <algorithm>
#include <cstring>

namespace candela::soft {

cdl_code_t Expr::bindOperand(const Call& call, const cdl_step_t& step, const cdl_operand_t& operand, uint32_t stepIndex,
                             const Operand& like, uint8_t accElem, Source& source) {
  source = {operand.source, operand.index};
  switch (operand.source) {
  case CDL_FROM_ACC:
    if (accElem == 0 || operand.elem != accElem)
      return call.fail(CDL_BAD_MODEL, "step %u reads the accumulator as %s, but it is %s", stepIndex,
                       elemName(operand.elem), elemName(accElem));
    return CDL_OK;
  case CDL_FROM_STEP:
    if (operand.index >= stepIndex || elems_[operand.index] != operand.elem)
      return call.fail(CDL_BAD_MODEL, "step %u reads step %u, which is no earlier step of type %s", stepIndex,
                       operand.index, elemName(operand.elem));
    return CDL_OK;
  case CDL_FROM_CONST: {
    const int bits = elemBits(operand.elem);
    std::vector<uint64_t> block(kBlock);
    const int bytes = std::max(1, bits / 8);
    uint64_t imm = step.imm;
    if (operand.elem == CDL_I4) imm = static_cast<uint8_t>(cdl_i4_get(&imm, 0));
    for (int64_t i = 0; i < kBlock; ++i) std::memcpy(reinterpret_cast<char*>(block.data()) + i * bytes, &imm, bytes);
    source.index = static_cast<uint32_t>(constants_.size());
    constants_.push_back(std::move(block));
    return CDL_OK;
  }
  case CDL_FROM_VIEW: {
    const auto known = std::find(viewInputs_.begin(), viewInputs_.end(), operand.index);
    source.index = static_cast<uint32_t>(known - viewInputs_.begin());
    Operand view = call.view(operand.index);
    if (!view.present() || view.elem != operand.elem)
      return call.fail(CDL_BAD_MODEL, "step %u reads input %u as %s, but it is %s", stepIndex, operand.index,
                       elemName(operand.elem), elemName(view.elem));
    if (known != viewInputs_.end()) return CDL_OK;
    const char* dims = dimsText(view);
    if (!broadcastTo(view, like))
      return call.fail(CDL_BAD_MODEL, "input %u has dims %s but the result has %s", operand.index, dims,
                       dimsText(like));
    viewInputs_.push_back(operand.index);
    views_.push_back(view);
    return CDL_OK;
  }
  default: return call.fail(CDL_BAD_MODEL, "step %u has an operand without a source", stepIndex);
  }
}

cdl_code_t Expr::bind(const Call& call, const Operand& like, uint8_t accElem) {
  const cdl_expr_t* expr = cdl_get_expr(call.image, call.instr->expr);
  if (call.instr->expr == 0 || expr->steps == 0) return call.fail(CDL_BAD_MODEL, "there is no expression");
  for (uint32_t s = 0; s < expr->steps; ++s) {
    const cdl_step_t& record = *cdl_get_step(call.image, expr->first_step + s);
    Step step{};
    step.operands = std::min<int>(record.operands, 3);
    uint8_t elems[3] = {};
    for (int k = 0; k < step.operands; ++k) {
      elems[k] = record.in[k].elem;
      const cdl_code_t code = bindOperand(call, record, record.in[k], s, like, accElem, step.in[k]);
      if (code != CDL_OK) return code;
    }
    if (!findBlockOp(record.kind, record.fn, elems, step.operands, record.elem, record.flags & 1, step.op))
      return call.fail(CDL_UNSUPPORTED, "step %u: %s of function %u gives no %s from %s", s, kindName(record.kind),
                       record.fn, elemName(record.elem), elemName(elems[0]));
    if (s + 1 < expr->steps) step.value.resize(kBlock);
    steps_.push_back(std::move(step));
    elems_.push_back(record.elem);
  }
  if (elems_.back() != like.elem)
    return call.fail(CDL_BAD_MODEL, "the expression gives %s but the result is %s", elemName(elems_.back()),
                     elemName(like.elem));
  return CDL_OK;
}

void Expr::evaluate(const void* const* views, const void* acc, void* out, int64_t n) {
  for (size_t s = 0; s < steps_.size(); ++s) {
    Step& step = steps_[s];
    const void* in[3] = {};
    for (int k = 0; k < step.operands; ++k) {
      const Source& source = step.in[k];
      in[k] = source.from == CDL_FROM_ACC    ? acc
              : source.from == CDL_FROM_VIEW ? views[source.index]
              : source.from == CDL_FROM_STEP ? steps_[source.index].value.data()
                                             : constants_[source.index].data();
    }
    step.op.run(step.op, in, s + 1 < steps_.size() ? step.value.data() : out, n);
  }
}

cdl_code_t Finisher::bind(const Call& call, const Operand& result, uint8_t accElem) {
  result_ = result;
  hasExpr_ = call.instr->expr != 0;
  scratch_.resize(kBlock);
  if (!hasExpr_) return CDL_OK;
  const cdl_code_t code = expr_.bind(call, result, accElem);
  if (code != CDL_OK) return code;
  for (const Operand& view : expr_.views()) {
    readers_.emplace_back(view);
    readers_.back().setStride(view.strides[view.rank - 1]);
  }
  pointers_.resize(readers_.size());
  return CDL_OK;
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
    for (size_t k = 0; k < readers_.size(); ++k) pointers_[k] = readers_[k].read(position(expr_.views()[k]), n);
    void* target = stride == 1 ? result_.address(at) : static_cast<void*>(scratch_.data());
    expr_.evaluate(pointers_.data(), acc, target, n);
    if (stride == 1) return;
    values = target;
  }
  scatterBlock(result_, at, stride, n, values);
}

} // namespace candela::soft
