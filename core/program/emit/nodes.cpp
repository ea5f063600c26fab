// Node -> instructions, as core/target/lower/describe.h names them: what was answered about a node is
// what its target gets.
#include "core/program/emit/emitter.h"
#include "core/support/text/literal.h"
#include "core/target/lower/describe.h"
#include "core/target/views.h"

namespace candela::program {

/// Views of steps are counted from the input `first` on.
Status Emitter::addSteps(const Node& node, const target::NodeInstr& from, size_t first, Instr& instr) {
  const text::ExprSteps& steps = from.steps;
  std::vector<Elem> elems;
  for (size_t i = first; i < instr.inputs.size(); ++i) elems.push_back(instr.inputs[i].elem);
  CDL_ASSIGN(const text::ExprTypes types, text::typeExpr(steps, elems, from.accumulator));
  for (size_t s = 0; s < steps.size(); ++s) {
    Step step;
    step.kind = steps[s].kind;
    step.fn = steps[s].fn;
    step.elem = types.steps[s];
    step.saturate = steps[s].saturate;
    bool hasConstant = false;
    for (size_t a = 0; a < steps[s].args.size(); ++a) {
      const text::ExprArg& arg = steps[s].args[a];
      Operand operand{Operand::Source::view, types.args[s][a], arg.index};
      if (arg.source == text::ExprArg::Source::acc) operand.source = Operand::Source::acc;
      if (arg.source == text::ExprArg::Source::step) operand.source = Operand::Source::step;
      if (arg.source == text::ExprArg::Source::view) operand.index = static_cast<uint16_t>(arg.index + first);
      if (arg.source == text::ExprArg::Source::literal) {
        if (hasConstant) return badModel("expr '{}': two constants in one step", node.userName());
        CDL_ASSIGN(step.imm, text::parseElement(operand.elem, arg.literal));
        operand.source = Operand::Source::constant;
        operand.index = 0;
        hasConstant = true;
      }
      step.in.push_back(operand);
    }
    instr.expr.push_back(std::move(step));
  }
  return Status::ok();
}

View Emitter::viewOf(const target::NodeView& from) {
  if (!from.value) return denseView(program_.addConstant("zero", Payload::splat(from.elem, 1, 0)), from.elem, {1});
  View view = dense(from.value, from.dims);
  view.strides = from.strides;
  view.offset = from.offset;
  if (from.layout.isRowMajor()) return view;
  view.layout.padContent = static_cast<uint8_t>(from.layout.pad);
  for (const graph::Layout::Step& step : from.layout.steps) {
    view.layout.steps.push_back({step.dim, step.factor});
    view.layout.logicalRank = std::max<uint8_t>(view.layout.logicalRank, step.dim + 1);
  }
  return view;
}

/// Fills the halo of the result: slabs before and behind the content of each dim, as wide as all of the later ones.
void Emitter::addBorder(const Node& node) {
  const graph::TensorType& type = node.result()->type;
  const graph::Halo& halo = *type.halo;
  const Shape content = type.physicalDims();
  for (size_t d = 0; d < content.size(); ++d) {
    for (const auto& [start, width] :
         {std::pair<int64_t, int64_t>{0, halo.lo[d]}, {halo.lo[d] + content[d], halo.hi[d]}}) {
      if (width == 0) continue;
      View slab = dense(node.result(), content);
      slab.strides = type.physicalStrides();
      slab.dims[d] = width;
      slab.offset = start * slab.strides[d];
      for (size_t i = 0; i < d; ++i) slab.offset += halo.lo[i] * slab.strides[i];
      for (size_t i = d + 1; i < content.size(); ++i) slab.dims[i] += halo.lo[i] + halo.hi[i];
      target::Walk walk = target::coalesce({slab.dims, {slab.strides}});
      slab.dims = std::move(walk.dims);
      slab.strides = std::move(walk.strides[0]);
      Instr fill;
      fill.kind = CDL_KIND_FILL;
      fill.outputs = {std::move(slab)};
      fill.attrs = {Attr::ofBits(CDL_ATTR_VALUE, halo.fill)};
      add(std::move(fill), node);
    }
  }
}

Status Emitter::emitNode(const Node& node) {
  const auto described = target::instructionsOf(node);
  if (described.empty())
    return badArgument("{} '{}' has no instruction: it must be lowered first", graph::opName(node.kind),
                       node.userName());
  if (node.result()->type.halo) addBorder(node);
  for (const target::NodeInstr& from : described) {
    const target::Answer answer = target_.query(target::describe(from));
    if (answer.support == target::Support::none)
      return failure(Code::internal, "{} '{}' is emitted but '{}' does not take it: {}", graph::opName(node.kind),
                     node.userName(), target_.name(), answer.detail);
    Instr instr;
    instr.kind = from.kind;
    instr.fn = from.fn;
    instr.inout = from.kind == CDL_KIND_SCATTER;
    for (const target::NodeView& operand : from.operands) instr.inputs.push_back(viewOf(operand));
    instr.outputs = {viewOf(from.result)};
    if (from.second.value) instr.outputs.push_back(viewOf(from.second));
    for (const auto& [id, values] : from.attrs) instr.attrs.push_back({id, cdl_attr_facts(id)->type, values});
    for (const target::NodeView& view : from.views) instr.inputs.push_back(viewOf(view));
    const size_t first = from.kind == CDL_KIND_ELEMENTWISE ? 0 : from.operands.size();
    if (!from.steps.empty()) CDL_TRY(addSteps(node, from, first, instr));
    add(std::move(instr), node);
  }
  return Status::ok();
}

} // namespace candela::program
