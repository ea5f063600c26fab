// Node -> instructions. The index spaces are those of core/target/lower/describe.cpp, by way of
// core/target/views.h.
#include "core/graph/window.h"
#include "core/program/emit/emitter.h"
#include "core/support/text/expr.h"
#include "core/support/text/literal.h"

namespace candela::program {

using graph::OpKind;
using target::coalesce;
using target::Walk;

namespace {

std::vector<int64_t> joined(std::vector<int64_t> a, const std::vector<int64_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Result<uint16_t> fnOf(uint16_t kind, const std::string& name) {
  const auto fn = parseFn(kind, name);
  if (!fn) return badModel("{} has no function '{}'", kindName(kind), name);
  return *fn;
}

Status noInstruction(const graph::Node& node) {
  return badArgument("{} '{}' has no instruction: it must be lowered first", graph::opName(node.kind), node.userName());
}

} // namespace

Status Emitter::emitElementwise(const Node& node, uint16_t kind, uint16_t fn, std::vector<Attr> attrs) {
  std::vector<Shape> shapes;
  for (const Value* operand : node.operands()) {
    if (!operand) return noInstruction(node);
    shapes.push_back(operand->type.shape());
  }
  const Walk walk = target::elementwiseWalk(shapes, node.result()->type.shape());
  std::vector<View> inputs;
  for (size_t i = 0; i < shapes.size(); ++i) inputs.push_back(strided(node.operand(i), walk.dims, walk.strides[i]));
  add(kind, fn, node, std::move(inputs), strided(node.result(), walk.dims, walk.strides.back()), std::move(attrs));
  return Status::ok();
}

Status Emitter::emitExpression(const Node& node) {
  CDL_ASSIGN(const text::ExprSteps steps, text::parseExpr(node.stringAttr("steps")));
  CDL_TRY(emitElementwise(node, CDL_KIND_ELEMENTWISE, 0));
  Instr& instr = program_.instrs.back();
  std::vector<Elem> elems;
  for (const View& view : instr.inputs) elems.push_back(view.elem);
  CDL_ASSIGN(const text::ExprTypes types, text::typeExpr(steps, elems));
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
      if (arg.source == text::ExprArg::Source::acc) return badModel("expr '{}': no accumulator", node.userName());
      if (arg.source == text::ExprArg::Source::step) operand.source = Operand::Source::step;
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

Status Emitter::emitPlace(const Node& node) {
  const Value* y = node.result();
  if (node.intAttr("fill"))
    add(CDL_KIND_FILL, 0, node, {}, dense(y, {y->type.count()}),
        {Attr::ofBits(CDL_ATTR_VALUE, static_cast<uint64_t>(node.intAttr("value")))});
  const std::vector<int64_t> strides = denseStrides(y->type.shape()), offsets = node.intsAttr("offsets");
  const size_t rank = strides.size();
  const std::vector<int64_t> steps = node.hasAttr("steps") ? node.intsAttr("steps") : std::vector<int64_t>(rank, 1);
  for (size_t i = 0; i < node.operands().size(); ++i) {
    const Value* x = node.operand(i);
    if (x->type.count() == 0) continue;
    int64_t offset = 0;
    std::vector<int64_t> stepped(rank);
    for (size_t d = 0; d < rank; ++d) {
      offset += offsets[i * rank + d] * strides[d];
      stepped[d] = strides[d] * steps[d];
    }
    const Walk walk = coalesce({x->type.shape(), {denseStrides(x->type.shape()), stepped}});
    add(CDL_KIND_COPY, 0, node, {strided(x, walk.dims, walk.strides[0])},
        strided(y, walk.dims, walk.strides[1], offset));
  }
  return Status::ok();
}

Status Emitter::emitMatmul(const Node& node) {
  std::vector<View> inputs{dense(node.operand(0)), dense(node.operand(1))};
  for (View& view : inputs) {
    if (view.dims[0] == node.result()->type.dim(0)) continue;
    view.dims[0] = node.result()->type.dim(0);
    view.strides[0] = 0;
  }
  if (node.operand(2)) inputs.push_back(dense(node.operand(2)));
  if (node.operand(3)) {
    if (!node.operand(2)) {
      const Elem elem = node.operand(0)->type.elem;
      inputs.push_back(denseView(program_.addConstant("zero", Payload::splat(elem, 1, 0)), elem, {1}));
    }
    inputs.push_back(dense(node.operand(3)));
  }
  add(CDL_KIND_MATMUL, 0, node, std::move(inputs), dense(node.result()));
  return Status::ok();
}

Status Emitter::emitConv(const Node& node) {
  const Shape w = node.operand(1)->type.shape();
  if (w.size() != 4) return noInstruction(node);
  const graph::Window window = graph::windowOf(node, {w[2], w[3]});
  Instr instr;
  instr.kind = CDL_KIND_CONV2D;
  instr.inputs = {dense(node.operand(0)), dense(node.operand(1))};
  instr.outputs = {dense(node.result())};
  instr.attrs = {Attr::ofInts(CDL_ATTR_STRIDES, window.strides),
                 Attr::ofInts(CDL_ATTR_PADS, joined(window.padsBegin, window.padsEnd)),
                 Attr::ofInts(CDL_ATTR_DILATIONS, window.dilations),
                 Attr::ofInt(CDL_ATTR_GROUP, node.intAttr("group"))};
  if (const Value* bias = node.operand(2)) {
    const Elem elem = node.result()->type.elem;
    instr.inputs.push_back(strided(bias, instr.outputs[0].dims, {0, 1, 0, 0}));
    Step step;
    step.kind = CDL_KIND_BINARY;
    step.fn = CDL_BINARY_ADD;
    step.elem = elem;
    step.in = {{Operand::Source::acc, elem, 0}, {Operand::Source::view, elem, 2}};
    instr.expr = {step};
  }
  add(std::move(instr), node);
  return Status::ok();
}

Status Emitter::emitPool(const Node& node) {
  const graph::Window window = graph::windowOf(node, node.intsAttr("kernel_shape"));
  if (window.rank() != 2) return noInstruction(node);
  const bool average = node.kind == OpKind::AveragePool;
  std::vector<int64_t> ends = window.padsEnd; // ceil mode is a larger pad at the end
  for (int d = 0; d < 2; ++d)
    ends[d] = std::max(ends[d], (node.result()->type.dim(d + 2) - 1) * window.strides[d] + window.span(d) -
                                    window.padsBegin[d] - node.operand(0)->type.dim(d + 2));
  std::vector<Attr> attrs{Attr::ofInts(CDL_ATTR_KERNEL, window.kernel), Attr::ofInts(CDL_ATTR_STRIDES, window.strides),
                          Attr::ofInts(CDL_ATTR_PADS, joined(window.padsBegin, ends)),
                          Attr::ofInts(CDL_ATTR_DILATIONS, window.dilations)};
  if (average) attrs.push_back(Attr::ofInt(CDL_ATTR_COUNT_INCLUDE_PAD, node.intAttr("count_include_pad")));
  add(CDL_KIND_POOL2D, average ? CDL_POOL2D_AVERAGE : CDL_POOL2D_MAX, node, {dense(node.operand(0))},
      dense(node.result()), std::move(attrs));
  return Status::ok();
}

Status Emitter::emitAlongAxis(const Node& node, uint16_t kind, uint16_t fn) {
  const auto around = [&](const Value* value) {
    return dense(value, target::aroundAxis(value->type.shape(), node.intAttr("axis")));
  };
  Instr instr;
  instr.kind = kind;
  instr.fn = fn;
  instr.inputs = {around(node.operand(0))};
  for (const Value* result : node.results()) instr.outputs.push_back(around(result));
  add(std::move(instr), node);
  return Status::ok();
}

Status Emitter::emitNode(const Node& node) {
  const Value *x = node.operand(0), *y = node.result();
  switch (node.kind) {
  case OpKind::Affine: {
    const Shape dims = node.intsAttr("dims");
    const Walk walk = coalesce({dims, {node.intsAttr("strides"), denseStrides(dims)}});
    add(CDL_KIND_COPY, 0, node, {strided(x, walk.dims, walk.strides[0], node.intAttr("offset"))},
        strided(y, walk.dims, walk.strides[1]));
    return Status::ok();
  }
  case OpKind::Place: return emitPlace(node);
  case OpKind::Cast:
    return emitElementwise(node, CDL_KIND_CONVERT, CDL_CONVERT_TRUNC,
                           {Attr::ofInt(CDL_ATTR_SATURATE, node.intAttr("saturate"))});
  case OpKind::Round: {
    CDL_ASSIGN(const uint16_t fn, fnOf(CDL_KIND_CONVERT, node.stringAttr("mode")));
    return emitElementwise(node, CDL_KIND_CONVERT, fn, {Attr::ofInt(CDL_ATTR_SATURATE, node.intAttr("saturate"))});
  }
  case OpKind::Take: {
    CDL_ASSIGN(const uint16_t fn, fnOf(CDL_KIND_GATHER, node.stringAttr("mode")));
    add(CDL_KIND_GATHER, fn, node, {dense(x), dense(node.operand(1))}, dense(y));
    return Status::ok();
  }
  case OpKind::Put: {
    CDL_ASSIGN(const uint16_t fn, fnOf(CDL_KIND_SCATTER, node.stringAttr("fn")));
    const Shape flat{y->type.count()};
    add(CDL_KIND_COPY, 0, node, {dense(x, flat)}, dense(y, flat));
    Instr scatter;
    scatter.kind = CDL_KIND_SCATTER;
    scatter.fn = fn;
    scatter.inout = true;
    scatter.inputs = {dense(node.operand(1)), dense(node.operand(2))};
    scatter.outputs = {dense(y)};
    add(std::move(scatter), node);
    return Status::ok();
  }
  case OpKind::Reduce: {
    CDL_ASSIGN(const uint16_t fn, fnOf(CDL_KIND_REDUCE, node.stringAttr("fn")));
    add(CDL_KIND_REDUCE, fn, node, {dense(x)}, dense(y));
    return Status::ok();
  }
  case OpKind::BatchMatmul: return emitMatmul(node);
  case OpKind::Rescale: {
    std::vector<Attr> attrs{Attr::ofInt(CDL_ATTR_A_LEFT_SHIFT, node.intAttr("left_shift"))};
    if (node.hasAttr("clamp_min")) attrs.push_back(Attr::ofInt(CDL_ATTR_CLAMP_MIN, node.intAttr("clamp_min")));
    if (node.hasAttr("clamp_max")) attrs.push_back(Attr::ofInt(CDL_ATTR_CLAMP_MAX, node.intAttr("clamp_max")));
    return emitElementwise(node, CDL_KIND_RESCALE, 0, std::move(attrs));
  }
  case OpKind::Table: {
    const Shape flat{y->type.count()};
    add(CDL_KIND_TABLE, 0, node, {dense(x, flat), dense(node.operand(1))}, dense(y, flat));
    return Status::ok();
  }
  case OpKind::Expr: return emitExpression(node);
  case OpKind::Conv: return emitConv(node);
  case OpKind::MaxPool:
  case OpKind::AveragePool: return emitPool(node);
  case OpKind::Softmax: return emitAlongAxis(node, CDL_KIND_SOFTMAX, CDL_SOFTMAX_SOFTMAX);
  case OpKind::Sort:
    return emitAlongAxis(node, CDL_KIND_SORT, node.intAttr("descending") ? CDL_SORT_DESCENDING : CDL_SORT_ASCENDING);
  default:
    if (node.info().instrKind == 0 || !node.info().has(graph::kTraitElementwise)) return noInstruction(node);
    return emitElementwise(node, node.info().instrKind, node.info().instrFn);
  }
}

} // namespace candela::program
