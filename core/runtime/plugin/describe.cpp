#include "core/runtime/plugin/plugin.h"

namespace candela::runtime::plugin {
namespace {

capabilities::OperandDesc describe(const cdl_image_t* image, const cdl_view_t& view,
                                   const std::vector<bool>& constants) {
  capabilities::OperandDesc operand;
  operand.elem = static_cast<Elem>(view.elem);
  operand.dims.assign(view.dims, view.dims + view.rank);
  operand.cls = capabilities::classify(operand.dims, {view.strides, view.rank});
  operand.isConstant = constants[view.buffer];
  if (view.layout) {
    operand.layout = *cdl_get_layout(image, view.layout);
    operand.layoutName = cdl_get_string(image, operand.layout.name);
  }
  return operand;
}

} // namespace

capabilities::InstrDesc describe(const cdl_image_t* image, uint32_t index) {
  return describe(image, index, constantBuffers(image));
}

capabilities::InstrDesc describe(const cdl_image_t* image, uint32_t index,
                                 const std::vector<bool>& constants) {
  const cdl_instr_t* instr = cdl_get_instr(image, index);
  capabilities::InstrDesc desc;
  desc.kind = instr->kind;
  desc.fn = instr->fn;
  uint32_t inputs = instr->inputs;
  if (instr->prologue) {
    // One operand, of which the row speaks; the views that it is computed of are walked as they
    // lie.
    const cdl_expr_t* expr = cdl_get_expr(image, instr->expr);
    cdl_view_t x = *cdl_get_input(image, instr, 0);
    x.elem = cdl_get_step(image, expr->first_step + instr->prologue - 1)->elem;
    int64_t stride = 1;
    for (uint32_t d = x.rank; d-- > 0; stride *= x.dims[d]) x.strides[d] = stride;
    desc.operands.push_back(describe(image, x, constants));
    desc.operands[0].isConstant = false;
    for (uint32_t i = 0; i < expr->steps; ++i) {
      const uint64_t kind = uint64_t(1) << cdl_get_step(image, expr->first_step + i)->kind;
      (i < instr->prologue ? desc.prologueKinds : desc.stepKinds) |= kind;
    }
    inputs = 0;
  } else if (instr->expr) {
    const cdl_expr_t* expr = cdl_get_expr(image, instr->expr);
    uint32_t exprViews = 0;
    for (uint32_t i = 0; i < expr->steps; ++i) {
      const cdl_step_t* step = cdl_get_step(image, expr->first_step + i);
      desc.stepKinds |= uint64_t(1) << step->kind;
      for (uint32_t k = 0; k < step->operands; ++k)
        if (step->in[k].source == CDL_FROM_VIEW)
          exprViews |= uint32_t(1) << std::min<uint32_t>(step->in[k].index, 31);
    }
    // An epilogue's own views are no operands of the row.
    if (instr->kind != CDL_KIND_ELEMENTWISE)
      while (inputs > 0 && inputs <= 32 && (exprViews >> (inputs - 1) & 1)) --inputs;
  }
  for (uint32_t i = 0; i < inputs; ++i) {
    const cdl_view_t& view = *cdl_get_input(image, instr, i);
    desc.operands.push_back(describe(image, view, constants));
    capabilities::classifyInput(instr->kind, i, {view.strides, view.rank}, desc.operands.back());
  }
  for (uint32_t i = 0; i < instr->outputs; ++i)
    desc.operands.push_back(describe(image, *cdl_get_output(image, instr, i), constants));
  for (uint32_t i = 0; i < instr->attrs; ++i) {
    const cdl_attr_t* attr = cdl_get_attr(image, instr->first_attr + i);
    desc.attrs.emplace_back(attr->id,
                            std::vector<int64_t>(attr->values, attr->values + attr->count));
  }
  return desc;
}

} // namespace candela::runtime::plugin
