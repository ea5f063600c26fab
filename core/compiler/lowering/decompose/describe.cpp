#include "core/compiler/lowering/decompose/describe.h"

#include <algorithm>
#include <bit>

#include "candela/cdl_facts.h"
#include "core/compiler/capabilities/rows.h"
#include "core/compiler/capabilities/views.h"
#include "core/compiler/graph/window.h"

namespace candela::lowering::decompose {

using graph::Node, graph::OpKind, graph::Value;

namespace {

constexpr size_t kMaxEpilogueViews = 16;

using Attrs = std::vector<std::pair<uint16_t, std::vector<int64_t>>>;
using Instrs = std::vector<NodeInstr>;

NodeView view(const Value* value, Shape dims, std::vector<int64_t> strides, int64_t offset = 0) {
  return {value, value->type.elem, std::move(dims), std::move(strides), offset, {}};
}
NodeView whole(const Value* value) { return viewOver(value, value); }

// The layout, with one step per dim where it is row-major.
graph::Layout stepsOf(const graph::TensorType& type) {
  graph::Layout layout = type.layout;
  for (int d = 0; type.layout.isRowMajor() && d < type.rank(); ++d)
    layout.steps.push_back({static_cast<uint8_t>(d), 0});
  return layout;
}

NodeView dense(const Value* value, const Shape& dims) {
  return view(value, dims, denseStrides(dims));
}
NodeView dense(const Value* value) { return dense(value, value->type.shape()); }
NodeView flat(const Value* value) { return dense(value, {value->type.count()}); }

NodeInstr instr(uint16_t kind, uint16_t fn, std::vector<NodeView> operands, NodeView result,
                Attrs attrs = {}) {
  return {kind,       fn, std::move(operands), std::move(result), std::move(attrs), {}, {},
          Elem::none, {}};
}

// The operands of `expr` over x[O,R,I], which is not there: each lies row-major.
Instrs reduceBehind(const Node& expr, const Node& node) {
  const Value *x = node.operand(0), *y = node.result();
  auto steps = text::parseExpr(expr.stringAttr("steps"));
  if (!steps) return {};
  std::vector<NodeView> operands;
  for (const Value* operand : expr.operands()) operands.push_back(viewOver(operand, x));
  NodeInstr one = instr(CDL_KIND_REDUCE, capabilities::fnOf(CDL_KIND_REDUCE, node.stringAttr("fn")),
                        std::move(operands), dense(y));
  one.prologue = steps->size();
  one.reduced = x->type.elem;
  one.accumulator = y->type.elem;
  one.steps = std::move(*steps);
  return {one};
}

// x[O,R,1]; O in blocks or not, sums lie as if it were not.
Instrs reduce(const Node& node) {
  if (const Node* prologue = prologueOf(node)) return reduceBehind(*prologue, node);
  const Value *x = node.operand(0), *y = node.result();
  Shape dims = x->type.physicalDims(), sums = y->type.shape();
  if (dims.size() == 4) {
    dims = {dims[0], dims[1], dims[3]};
    sums = {dims[0], dims[2]};
  }
  return {instr(CDL_KIND_REDUCE, capabilities::fnOf(CDL_KIND_REDUCE, node.stringAttr("fn")),
                {dense(x, dims)}, dense(y, sums))};
}
// What `views` walk together: on physical dims they are plain, whatever the layout is.
void coalesceAll(std::vector<NodeView>& views) {
  capabilities::Walk walk{views.back().dims, {}};
  for (const NodeView& each : views) walk.strides.push_back(each.strides);
  walk = capabilities::coalesce(walk);
  for (size_t i = 0; i < views.size(); ++i)
    views[i] = view(views[i].value, walk.dims, walk.strides[i], views[i].offset);
}

// All elements, in the fewest dims.
NodeView content(const Value* value) {
  std::vector<NodeView> views{whole(value)};
  coalesceAll(views);
  return views[0];
}

// Operands broadcast to the result. Nothing when the walk needs more dims than a view has.
Instrs elementwise(const Node& node, uint16_t kind, uint16_t fn, Attrs attrs = {}) {
  std::vector<NodeView> views;
  for (const Value* operand : node.operands()) {
    if (!operand) return {};
    views.push_back(viewOver(operand, node.result()));
  }
  views.push_back(whole(node.result()));
  coalesceAll(views);
  NodeView result = std::move(views.back());
  views.pop_back();
  if (result.dims.size() > CDL_MAX_RANK) return {};
  return {instr(kind, fn, std::move(views), std::move(result), std::move(attrs))};
}

// The same elements in another layout.
Instrs convertLayout(const Value* x, const Value* y) {
  // Of a row-major and a blocked value the blocked one has the dims.
  const bool isBlocking = !y->type.layout.isRowMajor();
  std::vector<NodeView> views{isBlocking ? viewOver(x, y) : whole(x),
                              isBlocking ? whole(y) : viewOver(y, x)};
  coalesceAll(views);
  return {instr(CDL_KIND_COPY, 0, {views[0]}, views[1])};
}

// `from` stands in `to` from an offset on, both walked over `dims`.
NodeInstr copy(const Value* from, const Value* to, const Shape& dims,
               const std::vector<int64_t>& fromStrides, int64_t fromOffset,
               const std::vector<int64_t>& toStrides, int64_t toOffset) {
  const capabilities::Walk walk = capabilities::coalesce({dims, {fromStrides, toStrides}});
  return instr(CDL_KIND_COPY, 0, {view(from, walk.dims, walk.strides[0], fromOffset)},
               view(to, walk.dims, walk.strides[1], toOffset));
}

Instrs place(const Node& node) {
  Instrs all;
  const Value* y = node.result();
  if (node.intAttr("fill"))
    all.push_back(
        instr(CDL_KIND_FILL, 0, {}, content(y), {{CDL_ATTR_VALUE, {node.intAttr("value")}}}));
  const graph::Layout layout = stepsOf(y->type);
  const std::vector<int64_t> strides = y->type.physicalStrides(),
                             offsets = node.intsAttr("offsets");
  const size_t rank = y->type.dims.size();
  const std::vector<int64_t> steps = node.intsAttr("steps", rank, 1);
  for (size_t i = 0; i < node.operands().size(); ++i) {
    const Value* x = node.operand(i);
    if (x->type.count() == 0) continue;
    // Whole blocks side by side: offsets move the open step of a dim.
    int64_t offset = y->type.physicalOffset();
    std::vector<int64_t> stepped = strides;
    for (size_t p = 0; p < strides.size(); ++p) {
      if (layout.steps[p].factor) continue;
      offset += offsets[i * rank + layout.steps[p].dim] / layout.stepOf(p) * strides[p];
      stepped[p] *= steps[layout.steps[p].dim];
    }
    all.push_back(copy(x, y, x->type.physicalDims(), x->type.physicalStrides(),
                       x->type.physicalOffset(), stepped, offset));
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
  if (b && !a) operands.push_back({nullptr, operands[0].elem, {1}, {1}, 0, {}});
  if (b) operands.push_back(dense(b));
}

// Instructions pad, they do not crop.
bool crops(const graph::Window& window) {
  for (int d = 0; d < window.rank(); ++d)
    if (window.padsBegin[d] < 0 || window.padsEnd[d] < 0) return true;
  return false;
}

// x[C], one value for each index of y's dim 1.
NodeView channelsOver(const Value* x, const Value* y) {
  const graph::Layout layout = stepsOf(y->type);
  NodeView over{x, x->type.elem, y->type.physicalDims(), {}, 0, y->type.layout};
  for (size_t i = 0; i < over.dims.size(); ++i)
    over.strides.push_back(layout.steps[i].dim == 1 ? layout.stepOf(i) : 0);
  return over;
}

Instrs conv2d(const Node& node) {
  const Shape w = node.operand(1)->type.shape();
  if (w.size() != 4) return {};
  graph::Window window = graph::windowOf(node, {w[2], w[3]});
  const bool transposed = node.kind == OpKind::ConvTranspose;
  // The end of a transposed one may stop short of the next stride: the result's dims say so.
  for (int d = 0; transposed && d < 2; ++d)
    if (window.padsEnd[d] > -window.strides[d])
      window.padsEnd[d] = std::max<int64_t>(0, window.padsEnd[d]);
  if (crops(window)) return {};
  std::vector<NodeView> operands{whole(node.operand(0)), whole(node.operand(1))};
  addZeroPoints(operands, node.operand(3), node.operand(4));
  NodeInstr conv = instr(CDL_KIND_CONV2D, 0, std::move(operands), whole(node.result()),
                         {{CDL_ATTR_STRIDES, window.strides},
                          {CDL_ATTR_PADS, joined(window.padsBegin, window.padsEnd)},
                          {CDL_ATTR_DILATIONS, window.dilations},
                          {CDL_ATTR_GROUP, {node.intAttr("group")}}});
  if (transposed) conv.attrs.push_back({CDL_ATTR_TRANSPOSED, {1}});
  if (const Value* bias = node.operand(2)) {
    if (bias->type.elem != node.result()->type.elem) return {}; // wider sums of i16
    using Source = text::ExprArg::Source;
    conv.views = {channelsOver(bias, node.result())};
    conv.accumulator = bias->type.elem;
    conv.steps = {{CDL_KIND_BINARY,
                   CDL_BINARY_ADD,
                   Elem::none,
                   false,
                   {{Source::acc, 0, ""}, {Source::view, 0, ""}}}};
  }
  return {conv};
}

Instrs pool2d(const Node& node) {
  const graph::Window window = graph::windowOf(node, node.intsAttr("kernel_shape"));
  if (window.rank() != 2 || (node.results().size() > 1 && node.result(1)) || crops(window))
    return {};
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
  return {instr(CDL_KIND_POOL2D, average ? CDL_POOL2D_AVERAGE : CDL_POOL2D_MAX,
                {whole(node.operand(0))}, whole(node.result()), std::move(attrs))};
}

// Along the axis of a softmax or a sort.
NodeView around(const Node& node, const Value* value) {
  return dense(value, capabilities::aroundAxis(value->type.shape(), node.intAttr("axis")));
}

Instrs rowNorm(const Node& node) {
  const int rank = node.result()->type.rank();
  Shape row{1, 1};
  for (int d = 0; d < rank; ++d)
    row[d >= graph::wrapAxis(node.intAttr("axis"), rank)] *= node.result()->type.dim(d);
  std::vector<NodeView> operands{dense(node.operand(0), row)};
  for (const size_t i : {1, 2})
    if (node.operand(i)) operands.push_back(flat(node.operand(i)));
  return {instr(CDL_KIND_NORM, node.kind == OpKind::LayerNorm ? CDL_NORM_LAYER : CDL_NORM_RMS,
                std::move(operands), dense(node.result(), row),
                {{CDL_ATTR_EPSILON, {std::bit_cast<int64_t>(node.floatAttr("epsilon"))}}})};
}

// The instruction of `from` with the steps of `node` behind its own. Nothing where they do not fit.
Instrs withEpilogue(const Node& from, const Node& node, text::ExprSteps steps) {
  Instrs all = instructionsOf(from);
  NodeInstr& one = all[0];
  const Value *acc = from.result(), *y = node.result();
  if (acc->type.shape() != y->type.shape() || acc->type.layout != y->type.layout) return {};
  const size_t ownSteps = one.steps.size(),
               ownViews = one.prologue ? one.operands.size() : one.views.size();
  for (size_t i = 1; i < node.operands().size(); ++i) {
    const Value* view = node.operand(i);
    if (!view->type.layout.isRowMajor() && view->type.layout != y->type.layout) return {};
    one.views.push_back(viewOver(view, y));
  }
  // Sums of blocks lie as rows, but are walked otherwise.
  if (one.kind == CDL_KIND_REDUCE && one.result.dims != y->type.shape() && !one.views.empty())
    return {};
  for (text::ExprStep& step : steps) {
    for (text::ExprArg& arg : step.args) {
      using Source = text::ExprArg::Source;
      const bool isAcc =
          arg.source == Source::acc || (arg.source == Source::view && arg.index == 0);
      if (isAcc)
        arg = ownSteps > one.prologue
                  ? text::ExprArg{Source::step, static_cast<uint16_t>(ownSteps - 1), ""}
                  : text::ExprArg{Source::acc, 0, ""};
      else if (arg.source == Source::step)
        arg.index = static_cast<uint16_t>(arg.index + ownSteps);
      else if (arg.source == Source::view)
        arg.index = static_cast<uint16_t>(arg.index - 1 + ownViews);
    }
    one.steps.push_back(std::move(step));
  }
  if (one.steps.size() > CDL_MAX_STEPS || one.views.size() > kMaxEpilogueViews) return {};
  one.accumulator = acc->type.elem;
  if (one.kind == CDL_KIND_REDUCE) {
    one.result.value = y;
    one.result.elem = y->type.elem;
  } else {
    one.result = whole(y);
  }
  return all;
}

Instrs expression(const Node& node) {
  auto steps = text::parseExpr(node.stringAttr("steps"));
  if (!steps) return {};
  if (const Node* from = accumulatorOf(node)) return withEpilogue(*from, node, std::move(*steps));
  Instrs all = elementwise(node, CDL_KIND_ELEMENTWISE, 0);
  if (all.empty()) return {};
  for (text::ExprStep& step : *steps)
    for (text::ExprArg& arg : step.args)
      if (arg.source == text::ExprArg::Source::acc) arg.source = text::ExprArg::Source::view;
  all[0].steps = std::move(*steps);
  return all;
}

Instrs matmul(const Node& node) {
  std::vector<NodeView> operands{whole(node.operand(0)), whole(node.operand(1))};
  for (NodeView& operand : operands) {
    // A batch of 1 is repeated by stride 0.
    if (operand.dims[0] == node.result()->type.dim(0)) continue;
    operand.dims[0] = node.result()->type.dim(0);
    operand.strides[0] = 0;
  }
  addZeroPoints(operands, node.operand(2), node.operand(3));
  return {instr(CDL_KIND_MATMUL, 0, std::move(operands), dense(node.result()))};
}

cdl_layout_t recordOf(const NodeView& view) {
  cdl_layout_t record{};
  if (view.layout.isRowMajor()) return record;
  record.count = static_cast<uint8_t>(view.layout.steps.size());
  record.pad_content = static_cast<uint8_t>(view.layout.pad);
  for (size_t i = 0; i < view.layout.steps.size(); ++i) {
    record.dim[i] = view.layout.steps[i].dim;
    record.factor[i] = view.layout.steps[i].factor;
    record.logical_rank = std::max<uint8_t>(record.logical_rank, record.dim[i] + 1);
  }
  return record;
}

// Batches in one dim; nothing where a mask does not walk them with one stride.
Instrs attention(const Node& node) {
  const Value *q = node.operand(0), *mask = node.operand(3);
  const auto batched = [](const Value* value) {
    const Shape shape = value->type.shape();
    return dense(value, {*elementCount(std::span(shape).first(shape.size() - 2)),
                         shape[shape.size() - 2], shape.back()});
  };
  std::vector<NodeView> operands{batched(q), batched(node.operand(1)), batched(node.operand(2))};
  if (mask) {
    Shape scores = q->type.shape();
    scores.back() = node.operand(1)->type.dim(-2);
    const auto strides = capabilities::broadcastStrides(mask->type.shape(), scores);
    const size_t batch = scores.size() - 2;
    const capabilities::Walk walk = capabilities::coalesce(
        {Shape(scores.begin(), scores.end() - 2), {{strides.begin(), strides.end() - 2}}});
    if (walk.dims.size() > 1) return {};
    const int64_t step = walk.dims.empty() ? 0 : walk.strides[0][0];
    operands.push_back(view(mask, {operands[0].dims[0], scores[batch], scores[batch + 1]},
                            {step, strides[batch], strides[batch + 1]}));
  }
  const int64_t scale = std::bit_cast<int64_t>(node.floatAttr("scale"));
  return {instr(CDL_KIND_ATTENTION, 0, std::move(operands), batched(node.result()),
                {{CDL_ATTR_SCALE, {scale}}})};
}

} // namespace

bool isWalkable(const std::vector<Value*>& values) {
  return !values.empty() &&
         std::ranges::all_of(values, [](const Value* v) { return v != nullptr; });
}

std::optional<text::ExprStep> stepOf(const Node& node) {
  if (node.results().size() != 1 || !isWalkable(node.operands())) return std::nullopt;
  // steps give what can be computed with
  if (isStorageOnly(node.result()->type.elem)) return std::nullopt;
  text::ExprStep step;
  step.kind = node.info().instrKind;
  step.fn = node.info().instrFn;
  switch (step.kind) {
  case CDL_KIND_UNARY:
  case CDL_KIND_BINARY:
  case CDL_KIND_COMPARE:
  case CDL_KIND_SELECT: return step;
  case CDL_KIND_CONVERT:
    step.to = node.elemAttr("to");
    step.saturate = node.intAttr("saturate") != 0;
    if (node.kind == OpKind::Round)
      step.fn = capabilities::fnOf(CDL_KIND_CONVERT, node.stringAttr("mode"));
    // "not 0" is a comparison, not a rounding.
    return step.to == Elem::bool_ ? std::nullopt : std::optional(step);
  case CDL_KIND_RESCALE: {
    step.to = node.result()->type.elem;
    const IntegerRange range = integerRange(step.to);
    if (node.operands().size() != 4 || node.intAttr("left_shift") || !text::isRescaleStep(step.to))
      return std::nullopt;
    step.low =
        static_cast<int32_t>(node.hasAttr("clamp_min") ? node.intAttr("clamp_min") : range.lowest);
    step.high =
        static_cast<int32_t>(node.hasAttr("clamp_max") ? node.intAttr("clamp_max") : range.highest);
    return step;
  }
  default: return std::nullopt;
  }
}

bool hasEpilogue(uint16_t kind) { return cdl_kind_facts(kind)->epilogue; }

const Node* accumulatorOf(const Node& node) {
  const Node* from =
      node.kind == OpKind::Expr && node.operand(0) ? node.operand(0)->producer : nullptr;
  if (!from || from->kind == OpKind::Expr || from->results().size() != 1) return nullptr;
  const auto steps = text::parseExpr(node.stringAttr("steps"));
  const bool readsIt = steps && std::ranges::any_of(*steps, [](const text::ExprStep& step) {
                         return std::ranges::any_of(step.args, [](const auto& arg) {
                           return arg.source == text::ExprArg::Source::acc;
                         });
                       });
  if (!readsIt) return nullptr;
  const Instrs all = instructionsOf(*from);
  return all.size() == 1 && hasEpilogue(all[0].kind) ? from : nullptr;
}

const Node* prologueOf(const Node& reduce) {
  if (reduce.kind != OpKind::Reduce || !reduce.intAttr("prologue") || !reduce.operand(0))
    return nullptr;
  const Value* x = reduce.operand(0);
  const bool isOwn = x->producer && x->producer->kind == OpKind::Expr && x->users().size() == 1 &&
                     x->type.layout.isRowMajor() && isWalkable(x->producer->operands()) &&
                     !accumulatorOf(*x->producer);
  if (!isOwn) return nullptr;
  const auto plain = [](const Value* each) { return each->type.layout.isRowMajor(); };
  return std::ranges::all_of(x->producer->operands(), plain) ? x->producer : nullptr;
}

const Node* reductionOf(const Node& node) {
  if (node.kind != OpKind::Expr || node.results().size() != 1 || node.result()->users().size() != 1)
    return nullptr;
  const Node* user = node.result()->users()[0];
  return prologueOf(*user) == &node ? user : nullptr;
}

const Node* epilogueOf(const Node& node) {
  if (node.results().size() != 1 || node.result()->users().empty()) return nullptr;
  const std::vector<Node*>& users = node.result()->users();
  const Node* user = users[0];
  return users.size() == 1 && accumulatorOf(*user) == &node ? user : nullptr;
}

bool convertsLayout(const Node& node) {
  return node.kind == OpKind::Affine && node.operand(0)->type.layout != node.result()->type.layout;
}

NodeView viewOver(const Value* x, const Value* y) {
  const graph::Layout layout = stepsOf(y->type);
  NodeView over{
      x, x->type.elem, y->type.physicalDims(), {}, x->type.physicalOffset(), y->type.layout};
  if (x->type.layout.isRowMajor()) {
    CDL_CHECK(!x->type.halo, "'{}' is row-major with a halo", x->name);
    const Shape shape = x->type.shape();
    const auto logical = shape == y->type.shape()
                             ? denseStrides(shape)
                             : capabilities::broadcastStrides(shape, y->type.shape());
    for (size_t i = 0; i < over.dims.size(); ++i)
      over.strides.push_back(logical[layout.steps[i].dim] * layout.stepOf(i));
    return over;
  }
  CDL_CHECK(x->type.layout == y->type.layout && x->type.rank() == y->type.rank(),
            "'{}' of {} is read over {}", x->name, x->type.text(), y->type.text());
  over.strides = x->type.physicalStrides();
  for (size_t i = 0; i < over.dims.size(); ++i)
    if (const uint8_t d = layout.steps[i].dim; x->type.dim(d) != y->type.dim(d))
      over.strides[i] = 0;
  return over;
}

namespace {

Instrs affine(const Node& node) {
  const Value *x = node.operand(0), *y = node.result();
  if (convertsLayout(node)) return convertLayout(x, y);
  const Shape dims = node.intsAttr("dims");
  return {
      copy(x, y, dims, node.intsAttr("strides"), node.intAttr("offset"), denseStrides(dims), 0)};
}

Instrs cast(const Node& node) {
  const Elem from = node.operand(0)->type.elem, to = node.result()->type.elem;
  // Not-0 is no rounding: a float becomes bool by a comparison (lowerElementwise).
  if (from == to || (to == Elem::bool_ && isFloat(from))) return {};
  return elementwise(node, CDL_KIND_CONVERT, CDL_CONVERT_TRUNC,
                     {{CDL_ATTR_SATURATE, {node.intAttr("saturate")}}});
}

Instrs bitcast(const Node& node) {
  NodeView bits = flat(node.operand(0));
  bits.elem = node.result()->type.elem;
  return {instr(CDL_KIND_COPY, 0, {std::move(bits)}, flat(node.result()))};
}

/// A copy of the data, into which the updates are scattered.
Instrs put(const Node& node) {
  const Value *x = node.operand(0), *y = node.result();
  const std::vector<int64_t> one{1};
  return {copy(x, y, {y->type.count()}, one, 0, one, 0),
          instr(CDL_KIND_SCATTER, capabilities::fnOf(CDL_KIND_SCATTER, node.stringAttr("fn")),
                {dense(node.operand(1)), dense(node.operand(2))}, dense(y))};
}

Instrs rescale(const Node& node) {
  Attrs attrs{{CDL_ATTR_A_LEFT_SHIFT, {node.intAttr("left_shift")}}};
  if (node.operand(4)) attrs.push_back({CDL_ATTR_B_LEFT_SHIFT, {node.intAttr("b_left_shift")}});
  if (node.hasAttr("clamp_min")) attrs.push_back({CDL_ATTR_CLAMP_MIN, {node.intAttr("clamp_min")}});
  if (node.hasAttr("clamp_max")) attrs.push_back({CDL_ATTR_CLAMP_MAX, {node.intAttr("clamp_max")}});
  return elementwise(node, CDL_KIND_RESCALE, 0, std::move(attrs));
}

Instrs table(const Node& node) {
  const Value* y = node.result();
  std::vector<NodeView> views{viewOver(node.operand(0), y), whole(y)};
  coalesceAll(views);
  return {instr(CDL_KIND_TABLE, 0, {views[0], dense(node.operand(1))}, views[1])};
}

Instrs scaledMatmul(const Node& node) {
  const Value *a = node.operand(0), *w = node.operand(1), *zero = node.operand(3),
              *aScale = node.operand(4);
  const int64_t rows = a->type.dim(0);
  const int64_t columns = w->type.dim(0);
  const int64_t blocks = w->type.dim(1);
  const auto perBlock = [&](const Value* scale, int64_t count) {
    const Shape dims{count, blocks};
    return view(scale, dims, capabilities::broadcastStrides(scale->type.shape(), dims));
  };
  std::vector<NodeView> operands{whole(a), whole(w), perBlock(node.operand(2), columns)};
  if (zero) operands.push_back(perBlock(zero, columns));
  // Scales of a alone stand behind zero points of 0.
  const Elem none = isInteger(w->type.elem) ? Elem::i8_ : Elem::f32_;
  if (aScale && !zero) operands.push_back({nullptr, none, {columns, blocks}, {0, 0}, 0, {}});
  if (aScale) operands.push_back(perBlock(aScale, rows));
  return {instr(CDL_KIND_SCALED_MATMUL,
                capabilities::fnOf(CDL_KIND_SCALED_MATMUL, node.stringAttr("fn")),
                std::move(operands), whole(node.result()))};
}

Instrs argReduce(const Node& node) {
  const Value* x = node.operand(0);
  Shape kept = capabilities::aroundAxis(x->type.shape(), node.intAttr("axis"));
  kept.erase(kept.begin() + 1);
  return {instr(CDL_KIND_ARG_REDUCE, capabilities::fnOf(CDL_KIND_ARG_REDUCE, node.stringAttr("fn")),
                {around(node, x)}, dense(node.result(), kept),
                {{CDL_ATTR_SELECT_LAST, {node.intAttr("select_last")}}})};
}

Instrs sort(const Node& node) {
  const uint16_t fn = node.intAttr("descending") ? CDL_SORT_DESCENDING : CDL_SORT_ASCENDING;
  NodeInstr made =
      instr(CDL_KIND_SORT, fn, {around(node, node.operand(0))}, around(node, node.result(0)));
  made.others = {around(node, node.result(1))};
  return {made};
}

} // namespace

std::vector<NodeInstr> instructionsOf(const Node& node) {
  const Value *x = node.operand(0), *y = node.results().empty() ? nullptr : node.result();
  switch (node.kind) {
  case OpKind::Constant:
  case OpKind::Reshape: return {};
  case OpKind::Affine: return affine(node);
  case OpKind::Place: return place(node);
  case OpKind::Cast: return cast(node);
  case OpKind::Round:
    return elementwise(node, CDL_KIND_CONVERT,
                       capabilities::fnOf(CDL_KIND_CONVERT, node.stringAttr("mode")),
                       {{CDL_ATTR_SATURATE, {node.intAttr("saturate")}}});
  case OpKind::Bitcast: return bitcast(node);
  case OpKind::Take:
    return {instr(CDL_KIND_GATHER, capabilities::fnOf(CDL_KIND_GATHER, node.stringAttr("mode")),
                  {dense(x), dense(node.operand(1))}, dense(y))};
  case OpKind::Put: return put(node);
  case OpKind::Reduce: return reduce(node);
  case OpKind::BatchMatmul: return matmul(node);
  case OpKind::Rescale: return rescale(node);
  case OpKind::Table: return table(node);
  case OpKind::Expr: return expression(node);
  case OpKind::Conv:
  case OpKind::ConvTranspose:
  case OpKind::ConvInteger: return conv2d(node);
  case OpKind::MaxPool:
  case OpKind::AveragePool: return pool2d(node);
  case OpKind::Attention: return attention(node);
  case OpKind::LayerNorm:
  case OpKind::RmsNorm: return rowNorm(node);
  case OpKind::Softmax:
    return {instr(CDL_KIND_SOFTMAX, CDL_SOFTMAX_SOFTMAX, {around(node, x)}, around(node, y))};
  case OpKind::ArgReduce: return argReduce(node);
  case OpKind::ScaledMatmul: return scaledMatmul(node);
  case OpKind::Sort: return sort(node);
  case OpKind::Custom: return {customInstr(node)};
  default:
    if (node.info().instrKind == 0 || !node.info().has(graph::kTraitElementwise)) return {};
    return elementwise(node, node.info().instrKind, node.info().instrFn);
  }
}

capabilities::InstrDesc describe(const NodeInstr& instr) {
  capabilities::InstrDesc desc;
  desc.kind = instr.kind;
  desc.fn = instr.fn;
  desc.attrs = instr.attrs;
  const auto add = [&](const NodeView& view) {
    const bool isConstant = !view.value || view.value->isConstant();
    const capabilities::OperandClass cls = capabilities::classify(view.dims, view.strides);
    desc.operands.push_back({view.elem, view.dims, cls, isConstant, recordOf(view)});
  };
  if (instr.prologue)
    desc.operands.push_back(
        {instr.reduced, instr.operands[0].dims, capabilities::OperandClass::dense, false, {}});
  else
    for (const NodeView& operand : instr.operands) {
      const size_t index = desc.operands.size();
      add(operand);
      capabilities::classifyInput(instr.kind, index, operand.strides, desc.operands.back());
    }
  add(instr.result);
  for (const NodeView& other : instr.others) add(other);
  for (size_t s = 0; s < instr.steps.size(); ++s)
    (s < instr.prologue ? desc.prologueKinds : desc.stepKinds) |= uint64_t(1)
                                                                  << instr.steps[s].kind;
  return desc;
}

} // namespace candela::lowering::decompose
