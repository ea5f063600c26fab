// Node -> the instructions that emit will make of it. core/program/emit walks the same index spaces
// (core/target/views.h), so that what was answered here is what the target gets.
#include "core/graph/window.h"
#include "core/support/text/expr.h"
#include "core/target/lower/lower.h"
#include "core/target/views.h"

namespace candela::target {

using graph::Node;
using graph::OpKind;
using graph::Value;

namespace {

using Attrs = std::vector<std::pair<uint16_t, std::vector<int64_t>>>;

OperandDesc dense(const Value* value, Shape dims) {
  return {value->type.elem, std::move(dims), OperandClass::dense, value->isConstant(), 0};
}
OperandDesc dense(const Value* value) { return dense(value, value->type.shape()); }

InstrDesc instr(uint16_t kind, uint16_t fn, std::vector<OperandDesc> operands, Attrs attrs = {}) {
  InstrDesc desc;
  desc.kind = kind;
  desc.fn = fn;
  desc.operands = std::move(operands);
  desc.attrs = std::move(attrs);
  return desc;
}

// Operands broadcast to the result. Nothing when the walk needs more dims than a view has.
std::optional<InstrDesc> elementwise(const Node& node, uint16_t kind, uint16_t fn, Attrs attrs = {}) {
  std::vector<Shape> shapes;
  for (const Value* operand : node.operands()) {
    if (!operand) return std::nullopt;
    shapes.push_back(operand->type.shape());
  }
  const Walk walk = elementwiseWalk(shapes, node.result()->type.shape());
  if (walk.dims.size() > CDL_MAX_RANK) return std::nullopt;
  InstrDesc desc = instr(kind, fn, {}, std::move(attrs));
  for (size_t i = 0; i < shapes.size(); ++i)
    desc.operands.push_back({node.operand(i)->type.elem, walk.dims, classify(walk.dims, walk.strides[i]),
                             node.operand(i)->isConstant(), 0});
  desc.operands.push_back(dense(node.result(), walk.dims));
  return desc;
}

// A copy between views that walk together.
InstrDesc copy(const Value* from, Elem to, const Walk& walk) {
  return instr(CDL_KIND_COPY, 0,
               {{from->type.elem, walk.dims, classify(walk.dims, walk.strides[0]), from->isConstant(), 0},
                {to, walk.dims, classify(walk.dims, walk.strides[1]), false, 0}});
}

InstrDesc fill(const Value* result) { return instr(CDL_KIND_FILL, 0, {dense(result, {result->type.count()})}); }

uint16_t roundFn(const std::string& mode) {
  return mode == "rne" ? CDL_CONVERT_RNE : mode == "floor" ? CDL_CONVERT_FLOOR : CDL_CONVERT_TRUNC;
}
uint16_t reduceFn(const std::string& fn) {
  return fn == "sum" ? CDL_REDUCE_SUM : fn == "max" ? CDL_REDUCE_MAX : fn == "min" ? CDL_REDUCE_MIN : CDL_REDUCE_PROD;
}
uint16_t scatterFn(const std::string& fn) {
  return fn == "set"   ? CDL_SCATTER_SET
         : fn == "add" ? CDL_SCATTER_ADD
         : fn == "min" ? CDL_SCATTER_MIN
         : fn == "max" ? CDL_SCATTER_MAX
                       : CDL_SCATTER_MUL;
}

std::vector<int64_t> joined(std::vector<int64_t> a, const std::vector<int64_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Instructions pad, they do not crop.
bool crops(const graph::Window& window) {
  for (int d = 0; d < window.rank(); ++d)
    if (window.padsBegin[d] < 0 || window.padsEnd[d] < 0) return true;
  return false;
}

// A bias is an epilogue: add(acc, v2).
std::optional<InstrDesc> conv2d(const Node& node) {
  const Shape w = node.operand(1)->type.shape();
  if (w.size() != 4) return std::nullopt;
  const graph::Window window = graph::windowOf(node, {w[2], w[3]});
  if (crops(window)) return std::nullopt;
  InstrDesc desc = instr(CDL_KIND_CONV2D, 0, {dense(node.operand(0)), dense(node.operand(1)), dense(node.result())},
                         {{CDL_ATTR_STRIDES, window.strides},
                          {CDL_ATTR_PADS, joined(window.padsBegin, window.padsEnd)},
                          {CDL_ATTR_DILATIONS, window.dilations},
                          {CDL_ATTR_GROUP, {node.intAttr("group")}}});
  if (node.operand(2)) desc.stepKinds = uint64_t(1) << CDL_KIND_BINARY;
  return desc;
}

std::optional<InstrDesc> pool2d(const Node& node) {
  const graph::Window window = graph::windowOf(node, node.intsAttr("kernel_shape"));
  if (window.rank() != 2 || (node.results().size() > 1 && node.result(1)) || crops(window)) return std::nullopt;
  const bool average = node.kind == OpKind::AveragePool;
  const bool countPad = average && node.intAttr("count_include_pad") != 0;
  // Ceil mode is a larger pad at the end, which no mean may count.
  std::vector<int64_t> ends = window.padsEnd;
  for (int d = 0; d < 2; ++d) {
    const int64_t reach = (node.result()->type.dim(d + 2) - 1) * window.strides[d] + window.span(d);
    const int64_t needed = reach - window.padsBegin[d] - node.operand(0)->type.dim(d + 2);
    if (needed > ends[d] && countPad) return std::nullopt;
    ends[d] = std::max(ends[d], needed);
  }
  return instr(CDL_KIND_POOL2D, average ? CDL_POOL2D_AVERAGE : CDL_POOL2D_MAX,
               {dense(node.operand(0)), dense(node.result())},
               {{CDL_ATTR_KERNEL, window.kernel},
                {CDL_ATTR_STRIDES, window.strides},
                {CDL_ATTR_PADS, joined(window.padsBegin, ends)},
                {CDL_ATTR_DILATIONS, window.dilations},
                {CDL_ATTR_COUNT_INCLUDE_PAD, {countPad}}});
}

OperandDesc around(const Node& node, const Value* value) {
  return dense(value, aroundAxis(value->type.shape(), node.intAttr("axis")));
}

std::optional<InstrDesc> expression(const Node& node) {
  auto steps = text::parseExpr(node.stringAttr("steps"));
  auto desc = elementwise(node, CDL_KIND_ELEMENTWISE, 0);
  if (!steps || !desc) return std::nullopt;
  for (const text::ExprStep& step : *steps) desc->stepKinds |= uint64_t(1) << step.kind;
  return desc;
}

InstrDesc matmul(const Node& node) {
  // A batch of 1 is repeated by stride 0, which every operand class of MATMUL has.
  const int64_t batch = node.result()->type.dim(0);
  InstrDesc desc = instr(CDL_KIND_MATMUL, 0, {});
  for (size_t i = 0; i < node.operands().size(); ++i) {
    if (!node.operand(i)) {
      // A zero point of b alone stands behind a constant 0 for a.
      if (i == 2 && node.operand(3))
        desc.operands.push_back({node.operand(0)->type.elem, {1}, OperandClass::dense, true, 0});
      continue;
    }
    Shape dims = node.operand(i)->type.shape();
    if (i < 2) dims[0] = batch;
    desc.operands.push_back(dense(node.operand(i), std::move(dims)));
  }
  desc.operands.push_back(dense(node.result()));
  return desc;
}

} // namespace

std::optional<InstrDesc> describe(const Node& node) {
  switch (node.kind) {
  case OpKind::Constant:
  case OpKind::Reshape: return std::nullopt;
  case OpKind::Affine: {
    const Shape dims = node.intsAttr("dims");
    return copy(node.operand(0), node.result()->type.elem,
                coalesce({dims, {node.intsAttr("strides"), denseStrides(dims)}}));
  }
  case OpKind::Place: {
    // The copy of the piece with the loosest strides in the result; describeAll has them all.
    std::optional<InstrDesc> worst;
    for (InstrDesc& desc : describeAll(node))
      if (!worst || desc.operands.back().cls > worst->operands.back().cls) worst = std::move(desc);
    return worst;
  }
  case OpKind::Cast: {
    // Not-0 is no rounding: a float becomes bool by a comparison (lowerElementwise).
    const Elem from = node.operand(0)->type.elem, to = node.result()->type.elem;
    if (from == to || (to == Elem::bool_ && isFloat(from))) return std::nullopt;
    return elementwise(node, CDL_KIND_CONVERT, CDL_CONVERT_TRUNC, {{CDL_ATTR_SATURATE, {node.intAttr("saturate")}}});
  }
  case OpKind::Round:
    return elementwise(node, CDL_KIND_CONVERT, roundFn(node.stringAttr("mode")),
                       {{CDL_ATTR_SATURATE, {node.intAttr("saturate")}}});
  case OpKind::Take:
    return instr(CDL_KIND_GATHER, node.stringAttr("mode") == "zero" ? CDL_GATHER_ZERO : CDL_GATHER_CLAMP,
                 {dense(node.operand(0)), dense(node.operand(1)), dense(node.result())});
  case OpKind::Put:
    return instr(CDL_KIND_SCATTER, scatterFn(node.stringAttr("fn")),
                 {dense(node.operand(1)), dense(node.operand(2)), dense(node.result())});
  case OpKind::Reduce:
    return instr(CDL_KIND_REDUCE, reduceFn(node.stringAttr("fn")), {dense(node.operand(0)), dense(node.result())});
  case OpKind::BatchMatmul: return matmul(node);
  case OpKind::Rescale: {
    Attrs attrs{{CDL_ATTR_A_LEFT_SHIFT, {node.intAttr("left_shift")}}};
    if (node.hasAttr("clamp_min")) attrs.push_back({CDL_ATTR_CLAMP_MIN, {node.intAttr("clamp_min")}});
    if (node.hasAttr("clamp_max")) attrs.push_back({CDL_ATTR_CLAMP_MAX, {node.intAttr("clamp_max")}});
    return elementwise(node, CDL_KIND_RESCALE, 0, std::move(attrs));
  }
  case OpKind::Table: {
    const Shape flat{node.result()->type.count()};
    return instr(CDL_KIND_TABLE, 0, {dense(node.operand(0), flat), dense(node.operand(1)), dense(node.result(), flat)});
  }
  case OpKind::Expr: return expression(node);
  case OpKind::Conv: return conv2d(node);
  case OpKind::MaxPool:
  case OpKind::AveragePool: return pool2d(node);
  case OpKind::Softmax:
    return instr(CDL_KIND_SOFTMAX, CDL_SOFTMAX_SOFTMAX, {around(node, node.operand(0)), around(node, node.result())});
  case OpKind::Sort:
    return instr(CDL_KIND_SORT, node.intAttr("descending") ? CDL_SORT_DESCENDING : CDL_SORT_ASCENDING,
                 {around(node, node.operand(0)), around(node, node.result(0)), around(node, node.result(1))});
  default:
    if (node.info().instrKind == 0 || !node.info().has(graph::kTraitElementwise)) return std::nullopt;
    return elementwise(node, node.info().instrKind, node.info().instrFn);
  }
}

std::vector<InstrDesc> describeAll(const Node& node) {
  std::vector<InstrDesc> all;
  if (node.kind == OpKind::Place) {
    const Value* y = node.result();
    if (node.intAttr("fill")) all.push_back(fill(y));
    const std::vector<int64_t> strides = denseStrides(y->type.shape());
    std::vector<int64_t> steps(strides.size(), 1), stepped(strides.size());
    if (node.hasAttr("steps")) steps = node.intsAttr("steps");
    for (size_t d = 0; d < strides.size(); ++d) stepped[d] = strides[d] * steps[d];
    for (const Value* x : node.operands())
      if (x->type.count() != 0)
        all.push_back(copy(x, y->type.elem, coalesce({x->type.shape(), {denseStrides(x->type.shape()), stepped}})));
    return all;
  }
  if (node.kind == OpKind::Put) {
    const int64_t count = node.result()->type.count();
    all.push_back(copy(node.operand(0), node.result()->type.elem, {{count}, {{1}, {1}}}));
  }
  if (auto desc = describe(node))
    all.push_back(std::move(*desc));
  else
    all.clear();
  return all;
}

} // namespace candela::target
