#include "tests/unit/compiler/differentiate/rule_faults.h"

#include <algorithm>

#include "core/compiler/graph/loop.h"

namespace candela::testing {
namespace {

using differentiate::make, differentiate::Term, differentiate::Writer;
using graph::Attrs, graph::Graph, graph::Node, graph::OpKind, graph::Value;

using Ints = std::vector<int64_t>;

bool isReal(const Value* value) { return value && value->type.elem == Elem::f64_; }
bool hasShape(const Value* value, const Shape& shape) {
  return isReal(value) && value->type.shape() == shape;
}

/// The node with other attributes.
Term remade(const Site& site, Attrs attrs) {
  return make(site.node.kind, site.operands, std::move(attrs));
}
Term remade(const Site& site, OpKind kind) { return make(kind, site.operands, site.node.attrs); }

// ---- Where faults apply

/// A gradient that comes out, and is not zero by its rule: zero has no sign.
bool isGradientOut(const Node& node, bool isGradient) {
  const Node* producer = isGradient ? node.operand(0)->producer : nullptr;
  return isGradient && !(producer && producer->kind == OpKind::Constant);
}
bool isTranspose(const Node& node, bool) {
  if (node.kind != OpKind::Transpose) return false;
  Ints moved; // dims of one element are nowhere else
  for (const int64_t axis : node.intsAttr("perm"))
    if (node.operand(0)->type.shape()[static_cast<size_t>(axis)] != 1) moved.push_back(axis);
  return !std::ranges::is_sorted(moved);
}
bool addsUp(const Node& node, bool) {
  return node.kind == OpKind::ReduceSum && isReal(node.result()) &&
         node.operand(0)->type.count() > node.result()->type.count();
}
/// Axes that are summed over and others, each as long.
std::optional<std::pair<int64_t, int64_t>> twins(const Node& node) {
  const Shape dims = node.operand(0)->type.shape();
  const Ints axes = node.intsAttr("axes");
  for (const int64_t axis : axes)
    for (size_t other = 0; other < dims.size(); ++other) {
      const int64_t own = axis < 0 ? axis + static_cast<int64_t>(dims.size()) : axis;
      const auto at = static_cast<int64_t>(other);
      if (std::ranges::count(axes, at) || std::ranges::count(axes, at - int64_t(dims.size())))
        continue;
      if (dims[other] > 1 && dims[other] == dims[static_cast<size_t>(own)])
        return std::pair(axis, at);
    }
  return std::nullopt;
}
bool hasTwinAxes(const Node& node, bool isGradient) {
  return addsUp(node, isGradient) && twins(node).has_value();
}
bool isPad(const Node& node, bool) {
  if (node.kind != OpKind::Pad || !isReal(node.result())) return false;
  const auto isWide = [](int64_t width) { return width > 0; };
  return std::ranges::any_of(node.intsAttr("lo"), isWide) ||
         std::ranges::any_of(node.intsAttr("hi"), isWide);
}
bool isRoomySlice(const Node& node, bool) {
  if (node.kind != OpKind::Slice || !isReal(node.result())) return false;
  const Ints starts = node.intsAttr("starts");
  return std::ranges::any_of(starts, [](int64_t start) { return start > 0; }) &&
         std::ranges::all_of(node.intsAttr("steps"), [](int64_t step) { return step > 0; });
}
bool isPaddedWindow(const Node& node, bool) {
  const bool isWindow = node.kind == OpKind::Conv || node.kind == OpKind::ConvTranspose;
  if (!isWindow || !node.attrs.count("pads")) return false;
  return std::ranges::any_of(node.intsAttr("pads"), [](int64_t pad) { return pad > 0; });
}
bool isProduct(const Node& node, bool) { return node.kind == OpKind::Mul && isReal(node.result()); }
bool losesFirst(const Node& node, bool isGradient) {
  return isProduct(node, isGradient) && hasShape(node.operand(1), node.result()->type.shape());
}
bool losesSecond(const Node& node, bool isGradient) {
  return isProduct(node, isGradient) && hasShape(node.operand(0), node.result()->type.shape());
}
bool hasNumber(const Node& node, bool) {
  if (node.kind != OpKind::Mul && node.kind != OpKind::Div) return false;
  return isReal(node.result()) && std::ranges::any_of(node.operands(), [](const Value* operand) {
           return operand->type.count() == 1 && operand->producer &&
                  operand->producer->kind == OpKind::Constant;
         });
}
bool isSum(const Node& node, bool) {
  return (node.kind == OpKind::Add || node.kind == OpKind::Sub) && isReal(node.result());
}
bool losesTerm(const Node& node, bool isGradient) {
  return isSum(node, isGradient) && hasShape(node.operand(0), node.result()->type.shape());
}
bool isQuotient(const Node& node, bool) { return node.kind == OpKind::Div; }
bool isChoice(const Node& node, bool) {
  return node.kind == OpKind::Select && isReal(node.result());
}
bool isOrder(const Node& node, bool) { return node.kind == OpKind::Less; }
bool isEquality(const Node& node, bool) {
  return node.kind == OpKind::Equal && isReal(node.operand(0));
}
std::optional<OpKind> mistakenFor(OpKind kind) {
  switch (kind) {
  case OpKind::Exp: return OpKind::Expm1;
  case OpKind::Log: return OpKind::Log1p;
  case OpKind::Sin: return OpKind::Cos;
  case OpKind::Cos: return OpKind::Sin;
  case OpKind::Sinh: return OpKind::Cosh;
  case OpKind::Cosh: return OpKind::Sinh;
  case OpKind::Sqrt: return OpKind::Reciprocal;
  case OpKind::Reciprocal: return OpKind::Sqrt;
  case OpKind::Tanh: return OpKind::Sigmoid;
  case OpKind::Sigmoid: return OpKind::Tanh;
  case OpKind::Erf: return OpKind::Tanh;
  case OpKind::Max: return OpKind::Min;
  case OpKind::Min: return OpKind::Max;
  default: return std::nullopt;
  }
}
bool isMistakable(const Node& node, bool) {
  return isReal(node.result()) && mistakenFor(node.kind).has_value();
}
bool isScatter(const Node& node, bool) { return node.kind == OpKind::Put && isReal(node.result()); }
bool isPower(const Node& node, bool) { return node.kind == OpKind::Pow; }

bool isCotangent(const Value* value) {
  return isReal(value) && !value->producer && value->name.starts_with("d_");
}
bool readsCotangent(const Node& node, bool) {
  return std::ranges::any_of(node.operands(), isCotangent);
}

// ---- What is wrong then

Term withoutCotangent(const Site& site) {
  std::vector<Term> operands = site.operands;
  for (size_t i = 0; i < operands.size(); ++i)
    if (isCotangent(site.node.operand(i)))
      operands[i] =
          differentiate::full(operands[i].writer(), 1, operands[i].shape(), operands[i].elem());
  return make(site.node.kind, operands, site.node.attrs);
}

Term unmoved(const Site& site) { return site.operands[0].reshape(site.right.shape()); }
Term firstOnly(const Site& site) {
  Term x = site.operands[0];
  for (const int64_t axis : site.node.intsAttr("axes"))
    x = x.slice(axis < 0 ? axis + x.rank() : axis, 0, 1);
  return x.reshape(site.right.shape());
}
Term mean(const Site& site) {
  const auto terms = static_cast<double>(site.operands[0].count()) /
                     static_cast<double>(std::max<int64_t>(1, site.right.count()));
  return site.right / terms;
}
Term overTwin(const Site& site) {
  const auto [axis, other] = *twins(site.node);
  Ints axes = site.node.intsAttr("axes");
  std::ranges::replace(axes, axis, other);
  Attrs attrs = site.node.attrs;
  attrs["axes"] = axes;
  return remade(site, attrs).reshape(site.right.shape());
}
/// One element more on one side and one less on the other, along the first axis that has room.
void shiftPads(Ints& lo, Ints& hi) {
  for (size_t d = 0; d < lo.size(); ++d) {
    if (lo[d] <= 0 && hi[d] <= 0) continue;
    const int64_t by = hi[d] > 0 ? 1 : -1;
    lo[d] += by;
    hi[d] -= by;
    return;
  }
}
Term paddedElsewhere(const Site& site) {
  Ints lo = site.node.intsAttr("lo");
  Ints hi = site.node.intsAttr("hi");
  shiftPads(lo, hi);
  Attrs attrs = site.node.attrs;
  attrs["lo"] = lo;
  attrs["hi"] = hi;
  return remade(site, attrs);
}
Term slicedElsewhere(const Site& site) {
  Ints starts = site.node.intsAttr("starts");
  *std::ranges::find_if(starts, [](int64_t start) { return start > 0; }) -= 1;
  Attrs attrs = site.node.attrs;
  attrs["starts"] = starts;
  return remade(site, attrs);
}
Term windowElsewhere(const Site& site) {
  const Ints pads = site.node.intsAttr("pads");
  Ints lo(pads.begin(), pads.begin() + static_cast<int64_t>(pads.size() / 2));
  Ints hi(pads.begin() + static_cast<int64_t>(pads.size() / 2), pads.end());
  shiftPads(lo, hi);
  lo.insert(lo.end(), hi.begin(), hi.end());
  Attrs attrs = site.node.attrs;
  attrs["pads"] = lo;
  return remade(site, attrs);
}
Term swappedChoice(const Site& site) {
  return make(OpKind::Select, {site.operands[0], site.operands[2], site.operands[1]});
}
Term otherKind(const Site& site) {
  const OpKind kind = *mistakenFor(site.node.kind);
  return make(kind, site.operands);
}

constexpr RuleFault kFaults[] = {
    {"sign", "a gradient has the other sign", isGradientOut,
     [](const Site& s) { return -s.right; }},
    {"doubled", "a gradient counts twice", isGradientOut,
     [](const Site& s) { return s.right + s.right; }},
    {"cotangent_ignored", "what the result counts is taken for 1", readsCotangent,
     withoutCotangent},
    {"transpose_missing", "a transpose is left out", isTranspose, unmoved},
    {"broadcast_forgotten", "the first of what broadcasting repeated counts, and not the sum",
     addsUp, firstOnly},
    {"mean_for_sum", "a mean in place of a sum", addsUp, mean},
    {"wrong_axis", "a sum over another axis", hasTwinAxes, overTwin},
    {"pad_off_by_one", "padding is one element off", isPad, paddedElsewhere},
    {"slice_off_by_one", "a slice begins one element before", isRoomySlice, slicedElsewhere},
    {"window_off_by_one", "a window's pads are one element off", isPaddedWindow, windowElsewhere},
    {"first_factor_lost", "the first factor of a product is left out", losesFirst,
     [](const Site& s) { return s.operands[1]; }},
    {"second_factor_lost", "the second factor of a product is left out", losesSecond,
     [](const Site& s) { return s.operands[0]; }},
    {"wrong_number", "a constant factor is twice what it should be", hasNumber,
     [](const Site& s) { return s.right * 2; }},
    {"term_lost", "the second term of a sum is left out", losesTerm,
     [](const Site& s) { return s.operands[0]; }},
    {"term_negated", "the second term of a sum has the other sign", isSum,
     [](const Site& s) {
       return remade(s, s.node.kind == OpKind::Add ? OpKind::Sub : OpKind::Add);
     }},
    {"not_divided", "a product in place of a quotient", isQuotient,
     [](const Site& s) { return remade(s, OpKind::Mul); }},
    {"choice_swapped", "the other one of two is chosen", isChoice, swappedChoice},
    {"order_swapped", "less in place of greater", isOrder,
     [](const Site& s) { return less(s.operands[1], s.operands[0]); }},
    {"equality_negated", "unequal in place of equal", isEquality,
     [](const Site& s) { return differentiate::logicalNot(s.right); }},
    {"function_mistaken", "another function of the same operands", isMistakable, otherKind},
    {"scatter_lost", "what is added by place is left out", isScatter,
     [](const Site& s) { return s.operands[0]; }},
    {"exponent_off_by_one", "a power has one factor more", isPower,
     [](const Site& s) { return s.right * s.operands[0]; }},
};

/// Nodes that the gradients need.
std::set<const Node*> neededBy(const Graph& graph) {
  std::set<const Node*> needed;
  for (size_t o = 0; o < graph.outputs().size(); ++o)
    if (graph.outputNames()[o].starts_with("d_")) needed.insert(graph.outputs()[o]->producer);
  const auto& nodes = graph.nodes();
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    if (!needed.count(node->get())) continue;
    for (const Value* operand : (*node)->operands())
      if (operand && operand->producer) needed.insert(operand->producer);
  }
  return needed;
}

bool isGradientOf(const Graph& graph, const Node& node) {
  for (size_t o = 0; o < graph.outputs().size(); ++o)
    if (graph.outputNames()[o].starts_with("d_") && graph.outputs()[o] == node.result())
      return true;
  return false;
}

} // namespace

std::span<const RuleFault> ruleFaults() { return kFaults; }

std::vector<size_t> sitesOf(const Graph& graph, const std::set<std::string>& before,
                            const RuleFault& fault) {
  const std::set<const Node*> needed = neededBy(graph);
  std::vector<size_t> sites;
  size_t place = 0;
  for (const auto& node : graph.nodes()) {
    const bool isOfRule = needed.count(node.get()) && !before.count(node->result()->name);
    const bool isWhole =
        std::ranges::none_of(node->operands(), [](const Value* operand) { return !operand; });
    if (isOfRule && isWhole && node->results().size() == 1 &&
        fault.applies(*node, isGradientOf(graph, *node)))
      sites.push_back(place);
    ++place;
  }
  return sites;
}

Graph withFault(const Graph& graph, size_t site, const RuleFault& fault) {
  Graph wrong;
  wrong.name = graph.name;
  std::map<const Value*, Value*> copies;
  for (const Value* input : graph.inputs())
    copies[input] = wrong.addInput(input->name, input->type);
  Writer writer{wrong};
  size_t place = 0;
  for (const auto& node : graph.nodes()) {
    wrong.addCopy(*node, copies);
    if (place++ != site) continue;
    const Term right(writer, copies.at(node->result()));
    Site at{*node, right, {}, isGradientOf(graph, *node)};
    for (const Value* operand : node->operands())
      at.operands.emplace_back(writer, copies.at(operand));
    copies[node->result()] = fault.wrong(at).value();
  }
  for (size_t o = 0; o < graph.outputs().size(); ++o)
    wrong.addOutput(copies.at(graph.outputs()[o]), graph.outputNames()[o]);
  return wrong;
}

} // namespace candela::testing
