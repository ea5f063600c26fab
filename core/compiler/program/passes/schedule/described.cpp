#include "core/compiler/program/passes/schedule/described.h"

namespace candela::program::passes::schedule {

namespace {

capabilities::OperandDesc operandOf(const Program& program, const View& view) {
  capabilities::OperandDesc operand;
  operand.elem = view.elem;
  operand.dims = view.dims;
  operand.cls = capabilities::classify(view.dims, view.strides);
  operand.isConstant = program.buffers[view.buffer].role == Role::constant;
  return operand;
}

cdl_layout_t recordOf(const Layout& layout) {
  cdl_layout_t record{};
  record.count = static_cast<uint8_t>(layout.steps.size());
  record.logical_rank = layout.logicalRank;
  record.pad_content = layout.padContent;
  record.opaque = layout.opaque;
  for (size_t i = 0; i < layout.steps.size(); ++i) {
    record.dim[i] = layout.steps[i].dim;
    record.factor[i] = layout.steps[i].factor;
  }
  return record;
}

} // namespace

capabilities::InstrDesc described(const Program& program, const Instr& instr) {
  capabilities::InstrDesc desc;
  desc.kind = instr.kind;
  desc.fn = instr.fn;
  for (const Attr& attr : instr.attrs) desc.attrs.emplace_back(attr.id, attr.values);
  if (instr.prologue) {
    // One operand, of which the row speaks; the views that it is computed of are walked as they
    // lie.
    View x = denseView(0, instr.expr[instr.prologue - 1].elem, instr.inputs[0].dims);
    desc.operands.push_back(operandOf(program, x));
    desc.operands[0].isConstant = false;
  }
  for (size_t i = 0; !instr.prologue && i < instr.operandCount(); ++i) {
    desc.operands.push_back(operandOf(program, instr.inputs[i]));
    capabilities::classifyInput(instr.kind, i, instr.inputs[i].strides, desc.operands.back());
  }
  for (const View& view : instr.outputs) desc.operands.push_back(operandOf(program, view));
  for (size_t s = 0; s < instr.expr.size(); ++s)
    (s < instr.prologue ? desc.prologueKinds : desc.stepKinds) |= uint64_t(1) << instr.expr[s].kind;
  return desc;
}

void describeLayouts(const Instr& instr, capabilities::InstrDesc& desc) {
  if (instr.prologue) return;
  const size_t operands = instr.operandCount();
  for (size_t i = 0; i < desc.operands.size(); ++i) {
    const Layout& layout =
        i < operands ? instr.inputs[i].layout : instr.outputs[i - operands].layout;
    desc.operands[i].layout = recordOf(layout);
    desc.operands[i].layoutName = layout.name;
  }
}

} // namespace candela::program::passes::schedule
