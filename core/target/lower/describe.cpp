#include "core/target/lower/describe.h"

#include <bit>

#include "core/graph/window.h"
#include "core/target/rows.h"
#include "core/target/views.h"

namespace candela::target {

using graph::Node;
using graph::OpKind;
using graph::Value;

namespace {

using Attrs = std::vector<std::pair<uint16_t, std::vector<int64_t>>>;
using Instrs = std::vector<NodeInstr>;

NodeView view(const Value* value, Shape dims, std::vector<int64_t> strides, int64_t offset = 0) {
  return {value, value->type.elem, std::move(dims), std::move(strides), offset};
}
NodeView dense(const Value* value, const Shape& dims) { return view(value, dims, denseStrides(dims)); }
NodeView dense(const Value* value) { return dense(value, value->type.shape()); }
NodeView flat(const Value* value) { return dense(value, {value->type.count()}); }

NodeInstr instr(uint16_t kind, uint16_t fn, std::vector<NodeView> operands, NodeView result, Attrs attrs = {}) {
  return {kind, fn, std::move(operands), std::move(result), std::move(attrs), {}, nullptr};
}

// Operands broadcast to the result. Nothing when the walk needs more dims than a view has.
Instrs elementwise(const Node& node, uint16_t kind, uint16_t fn, Attrs attrs = {}) {
  std::vector<Shape> shapes;
  for (const Value* operand : node.operands()) {
    if (!operand) return {};
    shapes.push_back(operand->type.shape());
  }
  const Walk walk = elementwiseWalk(shapes, node.result()->type.shape());
  if (walk.dims.size() > CDL_MAX_RANK) return {};
  std::vector<NodeView> operands;
  for (size_t i = 0; i < shapes.size(); ++i) operands.push_back(view(node.operand(i), walk.dims, walk.strides[i]));
  return {instr(kind, fn, std::move(operands), view(node.result(), walk.dims, walk.strides.back()), std::move(attrs))};
}

// `from` stands in `to` from an offset on, both walked over `dims`.
NodeInstr copy(const Value* from, const Value* to, const Shape& dims, const std::vector<int64_t>& fromStrides,
               int64_t fromOffset, const std::vector<int64_t>& toStrides, int64_t toOffset) {
  const Walk walk = coalesce({dims, {fromStrides, toStrides}});
  return instr(CDL_KIND_COPY, 0, {view(from, walk.dims, walk.strides[0], fromOffset)},
               view(to, walk.dims, walk.strides[1], toOffset));
}

Instrs place(const Node& node) {
  Instrs all;
  const Value* y = node.result();
  if (node.intAttr("fill"))
    all.push_back(instr(CDL_KIND_FILL, 0, {}, flat(y), {{CDL_ATTR_VALUE, {node.intAttr("value")}}}));
  const std::vector<int64_t> strides = denseStrides(y->type.shape()), offsets = node.intsAttr("offsets");
  const size_t rank = strides.size();
  const std::vector<int64_t> steps = node.intsAttr("steps", rank, 1);
  for (size_t i = 0; i < node.operands().size(); ++i) {
    const Value* x = node.operand(i);
    if (x->type.count() == 0) continue;
    int64_t offset = 0;
    std::vector<int64_t> stepped(rank);
    for (size_t d = 0; d < rank; ++d) {
      offset += offsets[i * rank + d] * strides[d];
      stepped[d] = strides[d] * steps[d];
    }
    const Shape dims = x->type.shape();
    all.push_back(copy(x, y, dims, denseStrides(dims), 0, stepped, offset));
  }
  return all;
}

std::vector<int64_t> joined(std::vector<int64_t> a, const std::vector<int64_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// A zero point of b alone stands behind a constant 0 for a.
void addZeroPoints(std::vector<NodeView>& operands, const Value* a, const Value* b) {
  if (a) operands.push_back(dense(a));
  if (b && !a) operands.push_back({nullptr, operands[0].elem, {1}, {1}, 0});
  if (b) operands.push_back(dense(b));
}

// Instructions pad, they do not crop.
bool crops(const graph::Window& window) {
  for (int d = 0; d < window.rank(); ++d)
    if (window.padsBegin[d] < 0 || window.padsEnd[d] < 0) return true;
  return false;
}

Instrs conv2d(const Node& node) {
  const Shape w = node.operand(1)->type.shape();
  if (w.size() != 4) return {};
  const graph::Window window = graph::windowOf(node, {w[2], w[3]});
  if (crops(window)) return {};
  std::vector<NodeView> operands{dense(node.operand(0)), dense(node.operand(1))};
  addZeroPoints(operands, node.operand(3), node.operand(4));
  NodeInstr conv = instr(CDL_KIND_CONV2D, 0, std::move(operands), dense(node.result()),
                         {{CDL_ATTR_STRIDES, window.strides},
                          {CDL_ATTR_PADS, joined(window.padsBegin, window.padsEnd)},
                          {CDL_ATTR_DILATIONS, window.dilations},
                          {CDL_ATTR_GROUP, {node.intAttr("group")}}});
  conv.bias = node.operand(2);
  return {conv};
}

Instrs pool2d(const Node& node) {
  const graph::Window window = graph::windowOf(node, node.intsAttr("kernel_shape"));
  if (window.rank() != 2 || (node.results().size() > 1 && node.result(1)) || crops(window)) return {};
  const bool average = node.kind == OpKind::AveragePool;
  const int64_t countPad = average ? node.intAttr("count_include_pad") : 0;
  // Ceil mode is a larger pad at the end, which no mean may count.
  std::vector<int64_t> ends = window.padsEnd;
  for (int d = 0; d < 2; ++d) {
    const int64_t reach = (node.result()->type.dim(d + 2) - 1) * window.strides[d] + window.span(d);
    const int64_t needed = reach - window.padsBegin[d] - node.operand(0)->type.dim(d + 2);
    if (needed > ends[d] && countPad) return {};
    ends[d] = std::max(ends[d], needed);
  }
  Attrs attrs{{CDL_ATTR_KERNEL, window.kernel},
              {CDL_ATTR_STRIDES, window.strides},
              {CDL_ATTR_PADS, joined(window.padsBegin, ends)},
              {CDL_ATTR_DILATIONS, window.dilations}};
  if (average) attrs.push_back({CDL_ATTR_COUNT_INCLUDE_PAD, {countPad}});
  return {instr(CDL_KIND_POOL2D, average ? CDL_POOL2D_AVERAGE : CDL_POOL2D_MAX, {dense(node.operand(0))},
                dense(node.result()), std::move(attrs))};
}

Instrs softmax(const Node& node) {
  const Shape shape = node.operand(0)->type.shape();
  const Shape form = aroundAxis(shape, graph::wrapAxis(node.intAttr("axis"), static_cast<int>(shape.size())));
  return {instr(CDL_KIND_SOFTMAX, CDL_SOFTMAX_SOFTMAX, {dense(node.operand(0), form)}, dense(node.result(), form))};
}

Instrs rowNorm(const Node& node) {
  const int rank = node.result()->type.rank();
  Shape row{1, 1};
  for (int d = 0; d < rank; ++d) row[d >= graph::wrapAxis(node.intAttr("axis"), rank)] *= node.result()->type.dim(d);
  std::vector<NodeView> operands{dense(node.operand(0), row)};
  for (const size_t i : {1, 2})
    if (node.operand(i)) operands.push_back(flat(node.operand(i)));
  return {instr(CDL_KIND_NORM, node.kind == OpKind::LayerNorm ? CDL_NORM_LAYER : CDL_NORM_RMS, std::move(operands),
                dense(node.result(), row), {{CDL_ATTR_EPSILON, {std::bit_cast<int64_t>(node.floatAttr("epsilon"))}}})};
}

Instrs expression(const Node& node) {
  auto steps = text::parseExpr(node.stringAttr("steps"));
  Instrs all = elementwise(node, CDL_KIND_ELEMENTWISE, 0);
  if (!steps || all.empty()) return {};
  all[0].steps = std::move(*steps);
  return all;
}

Instrs matmul(const Node& node) {
  std::vector<NodeView> operands{dense(node.operand(0)), dense(node.operand(1))};
  for (NodeView& operand : operands) {
    // A batch of 1 is repeated by stride 0.
    if (operand.dims[0] == node.result()->type.dim(0)) continue;
    operand.dims[0] = node.result()->type.dim(0);
    operand.strides[0] = 0;
  }
  addZeroPoints(operands, node.operand(2), node.operand(3));
  return {instr(CDL_KIND_MATMUL, 0, std::move(operands), dense(node.result()))};
}

} // namespace

std::vector<NodeInstr> instructionsOf(const Node& node) {
  const Value *x = node.operand(0), *y = node.results().empty() ? nullptr : node.result();
  switch (node.kind) {
  case OpKind::Constant:
  case OpKind::Reshape: return {};
  case OpKind::Affine: {
    const Shape dims = node.intsAttr("dims");
    return {copy(x, y, dims, node.intsAttr("strides"), node.intAttr("offset"), denseStrides(dims), 0)};
  }
  case OpKind::Place: return place(node);
  case OpKind::Cast:
    // Not-0 is no rounding: a float becomes bool by a comparison (lowerElementwise).
    if (x->type.elem == y->type.elem || (y->type.elem == Elem::bool_ && isFloat(x->type.elem))) return {};
    return elementwise(node, CDL_KIND_CONVERT, CDL_CONVERT_TRUNC, {{CDL_ATTR_SATURATE, {node.intAttr("saturate")}}});
  case OpKind::Round:
    return elementwise(node, CDL_KIND_CONVERT, fnOf(CDL_KIND_CONVERT, node.stringAttr("mode")),
                       {{CDL_ATTR_SATURATE, {node.intAttr("saturate")}}});
  case OpKind::Take:
    return {instr(CDL_KIND_GATHER, fnOf(CDL_KIND_GATHER, node.stringAttr("mode")), {dense(x), dense(node.operand(1))},
                  dense(y))};
  case OpKind::Put: {
    const std::vector<int64_t> one{1};
    return {copy(x, y, {y->type.count()}, one, 0, one, 0),
            instr(CDL_KIND_SCATTER, fnOf(CDL_KIND_SCATTER, node.stringAttr("fn")),
                  {dense(node.operand(1)), dense(node.operand(2))}, dense(y))};
  }
  case OpKind::Reduce:
    return {instr(CDL_KIND_REDUCE, fnOf(CDL_KIND_REDUCE, node.stringAttr("fn")), {dense(x)}, dense(y))};
  case OpKind::BatchMatmul: return matmul(node);
  case OpKind::Rescale: {
    Attrs attrs{{CDL_ATTR_A_LEFT_SHIFT, {node.intAttr("left_shift")}}};
    if (node.operand(4)) attrs.push_back({CDL_ATTR_B_LEFT_SHIFT, {node.intAttr("b_left_shift")}});
    if (node.hasAttr("clamp_min")) attrs.push_back({CDL_ATTR_CLAMP_MIN, {node.intAttr("clamp_min")}});
    if (node.hasAttr("clamp_max")) attrs.push_back({CDL_ATTR_CLAMP_MAX, {node.intAttr("clamp_max")}});
    return elementwise(node, CDL_KIND_RESCALE, 0, std::move(attrs));
  }
  case OpKind::Table: return {instr(CDL_KIND_TABLE, 0, {flat(x), dense(node.operand(1))}, flat(y))};
  case OpKind::Expr: return expression(node);
  case OpKind::Conv:
  case OpKind::ConvInteger: return conv2d(node);
  case OpKind::MaxPool:
  case OpKind::AveragePool: return pool2d(node);
  case OpKind::Softmax: return softmax(node);
  case OpKind::LayerNorm:
  case OpKind::RmsNorm: return rowNorm(node);
  default:
    if (node.info().instrKind == 0 || !node.info().has(graph::kTraitElementwise)) return {};
    return elementwise(node, node.info().instrKind, node.info().instrFn);
  }
}

InstrDesc describe(const NodeInstr& instr) {
  InstrDesc desc;
  desc.kind = instr.kind;
  desc.fn = instr.fn;
  desc.attrs = instr.attrs;
  const auto add = [&](const NodeView& view) {
    // MATMUL repeats a batch by stride 0 in every operand class.
    const bool batch = instr.kind == CDL_KIND_MATMUL && desc.operands.size() < 2 && view.strides[0] == 0;
    const OperandClass cls = classify(std::span(view.dims).subspan(batch), std::span(view.strides).subspan(batch));
    desc.operands.push_back({view.elem, view.dims, cls, !view.value || view.value->isConstant(), 0});
  };
  for (const NodeView& operand : instr.operands) add(operand);
  add(instr.result);
  for (const text::ExprStep& step : instr.steps) desc.stepKinds |= uint64_t(1) << step.kind;
  if (instr.bias) desc.stepKinds |= uint64_t(1) << CDL_KIND_BINARY;
  return desc;
}

} // namespace candela::target
