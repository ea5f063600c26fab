// Composites that models spell out in small steps: GELU, sigmoid, softmax, attention, LayerNorm,
// RMSNorm.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "core/compiler/graph/passes/rewrite.h"
#include "core/support/float_bits.h"

namespace candela::graph::passes {

namespace {

/// Whether a constant is this number, as near as its type comes to it.
bool isAbout(const Value* value, double number) {
  const auto bits = splatBits(value);
  return bits && isFloat(value->type.elem) && *bits == fromReal(value->type.elem, number);
}

/// The other operand of an operation with a number, in either order.
Value* besideNumber(const Node* node, double number) {
  if (node && isAbout(node->operand(1), number)) return node->operand(0);
  return node && isAbout(node->operand(0), number) ? node->operand(1) : nullptr;
}

bool isHalf(Elem elem) { return elem == Elem::f16_ || elem == Elem::bf16_; }

// ---- GELU: x * (1 + erf(x / sqrt(2))) * 0.5, in any order

/// x of 1 + erf(x / sqrt(2)).
Value* gateOf(const Value* value) {
  const Value* sum = besideNumber(plainProducer(value, OpKind::Add), 1);
  const Node* erf = plainProducer(sum, OpKind::Erf);
  const Value* scaled = erf ? erf->operand(0) : nullptr;
  if (const Node* div = plainProducer(scaled, OpKind::Div))
    return isAbout(div->operand(1), std::numbers::sqrt2) ? div->operand(0) : nullptr;
  return besideNumber(plainProducer(scaled, OpKind::Mul), std::numbers::sqrt2 / 2);
}

Value* geluOf(const Node& node) {
  const Node* outer = plainProducer(node.result(), OpKind::Mul);
  if (!outer) return nullptr;
  for (const int side : {0, 1}) {
    const Node* inner = plainProducer(outer->operand(side), OpKind::Mul);
    if (!inner) continue;
    Value* const factors[3] = {outer->operand(1 - side), inner->operand(0), inner->operand(1)};
    for (const int gate : {0, 1, 2})
      if (Value* x = gateOf(factors[gate])) {
        const Value *p = factors[(gate + 1) % 3], *q = factors[(gate + 2) % 3];
        if ((p == x && isAbout(q, 0.5)) || (q == x && isAbout(p, 0.5))) return x;
      }
  }
  return nullptr;
}

// ---- 1 / (1 + exp(-x)), and exp(x - max(x)) / sum(exp(x - max(x))), with the maximum or without
// it

Value* sigmoidOf(const Node& node) {
  const Node* inverse = plainProducer(node.result(), OpKind::Reciprocal);
  const Node* div = plainProducer(node.result(), OpKind::Div);
  if (!inverse && (!div || !isAbout(div->operand(0), 1))) return nullptr;
  const Node* exp = plainProducer(
      besideNumber(plainProducer(node.operand(inverse ? 0 : 1), OpKind::Add), 1), OpKind::Exp);
  const Node* neg = exp ? plainProducer(exp->operand(0), OpKind::Neg) : nullptr;
  return neg && neg->result()->type == node.result()->type ? neg->operand(0) : nullptr;
}

/// The operand of a reduction along one axis, which is kept; axis < 0: it becomes known.
const Value* reducedOf(const Value* value, OpKind kind, int64_t& axis) {
  const Node* reduction = plainProducer(value, kind);
  if (!reduction || !reduction->intAttr("keepdims") || reduction->intsAttr("axes").size() != 1)
    return nullptr;
  const int64_t own = wrapAxis(reduction->intsAttr("axes")[0], value->type.rank());
  if (axis >= 0 && axis != own) return nullptr;
  axis = own;
  return reduction->operand(0);
}

Value* softmaxOf(const Node& node, int64_t& axis) {
  const Node* div = plainProducer(node.result(), OpKind::Div);
  const Node* exp = div ? plainProducer(div->operand(0), OpKind::Exp) : nullptr;
  if (!exp || reducedOf(div->operand(1), OpKind::ReduceSum, axis) != exp->result()) return nullptr;
  const Node* sub = plainProducer(exp->operand(0), OpKind::Sub);
  const bool centred =
      sub && reducedOf(sub->operand(1), OpKind::ReduceMax, axis) == sub->operand(0);
  if (centred) return sub->operand(0);
  return isHalf(node.result()->type.elem) ? nullptr : exp->operand(0); // whose exp is soon infinite
}

// ---- Attention: softmax(q . transposed k * scale + mask) . v
//
// A factor of q or k stays where it is: models put it there so that the sums stay in their type's
// range.

/// x of x * number or x / number; the number joins `factor`, which its type holds.
Value* withoutFactor(Value* value, double& factor) {
  const Node *mul = plainProducer(value, OpKind::Mul), *div = plainProducer(value, OpKind::Div);
  const Node* node = mul ? mul : div;
  const auto number = node ? splatReal(node->operand(1)) : std::nullopt;
  if (!number || *number == 0 || !(node->operand(0)->type == value->type)) return value;
  const double joined = factor * (mul ? *number : 1 / *number);
  if (!holdsWell(value->type.elem, joined)) return value;
  factor = joined;
  return node->operand(0);
}

bool onlyUse(const Graph& graph, const Value* value) {
  return value->users().size() == 1 && !graph.isOutput(value);
}

/// Of halves it stays in steps: what is lost where scores are rounded to them, exp makes larger, so
/// that a result from scores that are not rounded is another one.
Result<bool> raiseAttention(Graph& graph, Node* node) {
  if (isHalf(node->result()->type.elem)) return false;
  const Node* outer = plainProducer(node->result(), OpKind::Matmul);
  const Node* softmax = outer ? plainProducer(outer->operand(0), OpKind::Softmax) : nullptr;
  const int rank = node->result()->type.rank();
  if (!softmax || rank < 3 || wrapAxis(softmax->intAttr("axis"), rank) != rank - 1) return false;
  Value *scores = softmax->operand(0), *v = outer->operand(1), *mask = nullptr;
  const Shape shape = scores->type.shape();
  if (const Node* add = plainProducer(scores, OpKind::Add)) {
    double ignored = 1;
    const bool left = plainProducer(withoutFactor(add->operand(0), ignored), OpKind::Matmul);
    scores = add->operand(left ? 0 : 1);
    mask = add->operand(left ? 1 : 0);
  }
  double scale = 1;
  Value* products = withoutFactor(scores, scale);
  const Node* inner = plainProducer(products, OpKind::Matmul);
  Value* const steps[] = {products, scores, softmax->operand(0), outer->operand(0)};
  for (const Value* step : steps)
    if (!inner || !onlyUse(graph, step) || step->type.shape() != shape) return false;
  Value *q = inner->operand(0), *k = inner->operand(1);
  const auto isBatch = [&](const Value* value) {
    const Shape own = value->type.shape();
    return own.size() == shape.size() && std::equal(own.begin(), own.end() - 2, shape.begin());
  };
  if (!isBatch(q) || !isBatch(k) || !isBatch(v)) return false;
  std::vector<int64_t> swap(static_cast<size_t>(rank));
  std::iota(swap.begin(), swap.end(), 0);
  std::swap(swap[swap.size() - 1], swap[swap.size() - 2]);
  Provenance names;
  for (const Value* step : steps) mergeProvenance(names, step->producer->provenance);
  mergeProvenance(names, node->provenance);
  CDL_ASSIGN(const Node* keys,
             graph.addNode(OpKind::Transpose, {k}, {{"perm", swap}}, inner->provenance, node));
  std::vector<Value*> operands{q, keys->result(), v};
  if (mask) operands.push_back(mask);
  CDL_ASSIGN(const Node* whole, graph.addNode(OpKind::Attention, std::move(operands),
                                              {{"scale", scale}}, names, node));
  replaceWithNew(graph, node, whole->result());
  return true;
}

// ---- Norms: n / sqrt(mean(n^2) + epsilon), where n is x or x - mean(x)

/// x of a mean over the dims from `axis` on, which is kept; axis < 0: it becomes known.
Value* meanOf(const Value* value, int64_t& axis) {
  const Node* mean = plainProducer(value, OpKind::ReduceMean);
  if (!mean || !mean->intAttr("keepdims")) return nullptr;
  const int rank = mean->operand(0)->type.rank();
  std::vector<bool> reduced(static_cast<size_t>(rank), false);
  for (const int64_t a : mean->intsAttr("axes"))
    reduced[static_cast<size_t>(wrapAxis(a, rank))] = true;
  int64_t first = rank;
  while (first > 0 && reduced[static_cast<size_t>(first - 1)]) --first;
  if (first == rank || static_cast<int64_t>(mean->intsAttr("axes").size()) != rank - first)
    return nullptr;
  if (axis >= 0 && axis != first) return nullptr;
  axis = first;
  return mean->operand(0);
}

struct Norm {
  Value *n = nullptr, *x = nullptr;
  int64_t axis = -1;
  double epsilon = 0;
  bool centres = false;
};

/// Of halves it stays in steps: a mean of such squares leaves their range, and one that is rounded
/// to them is not the mean that is subtracted.
std::optional<Norm> normOf(const Node& node) {
  if (isHalf(node.result()->type.elem)) return std::nullopt;
  // n / spread, or n * (1 / spread).
  Value *n = node.operand(0), *spread = node.operand(1);
  if (node.kind == OpKind::Mul) {
    if (!plainProducer(spread, OpKind::Reciprocal)) std::swap(n, spread);
    const Node* inverse = plainProducer(spread, OpKind::Reciprocal);
    if (!inverse) return std::nullopt;
    spread = inverse->operand(0);
  } else if (node.kind != OpKind::Div) {
    return std::nullopt;
  }
  const Node* root = plainProducer(spread, OpKind::Sqrt);
  const Node* sum = root ? plainProducer(root->operand(0), OpKind::Add) : nullptr;
  if (!sum || !isPlain(n)) return std::nullopt;
  const bool right = splatReal(sum->operand(1)).has_value();
  const auto epsilon = splatReal(sum->operand(right ? 1 : 0));
  Norm norm{n, n, -1, epsilon.value_or(0)};
  const Value* squares = meanOf(sum->operand(right ? 0 : 1), norm.axis);
  if (!epsilon || !squares) return std::nullopt;
  const Node *product = plainProducer(squares, OpKind::Mul),
             *power = plainProducer(squares, OpKind::Pow);
  const bool isSquare = (product && product->operand(0) == n && product->operand(1) == n) ||
                        (power && power->operand(0) == n && isAbout(power->operand(1), 2));
  if (!isSquare || !(node.result()->type == n->type)) return std::nullopt;
  if (const Node* centred = plainProducer(n, OpKind::Sub))
    if (meanOf(centred->operand(1), norm.axis) == centred->operand(0)) {
      norm.x = centred->operand(0);
      norm.centres = true;
    }
  return norm;
}

/// A product with a row, or a sum with one, that a norm can take as its scale or bias.
Result<bool> takeRow(Graph& graph, Node* node) {
  const bool isScale = node->kind == OpKind::Mul;
  if (!isScale && node->kind != OpKind::Add) return false;
  for (const int side : {0, 1}) {
    Node* norm = node->operand(side)->producer;
    Value* row = node->operand(1 - side);
    if (!norm || (norm->kind != OpKind::LayerNorm && (norm->kind != OpKind::RmsNorm || !isScale)) ||
        !isPlain(row))
      continue;
    const Shape shape = norm->result()->type.shape();
    const auto axis = wrapAxis(norm->intAttr("axis"), static_cast<int>(shape.size()));
    const bool free =
        isScale ? !norm->operand(1) && !norm->operand(2) : norm->operand(1) && !norm->operand(2);
    if (!free || norm->result()->users().size() != 1 || graph.isOutput(norm->result()) ||
        row->type.shape() != Shape(shape.begin() + axis, shape.end()))
      continue;
    std::vector<Value*> operands = norm->operands();
    operands.resize(isScale ? 1 : 2);
    operands.push_back(row);
    CDL_ASSIGN(const Node* whole,
               graph.addNode(norm->kind, std::move(operands), norm->attrs,
                             mergedProvenance(norm->provenance, node->provenance), node));
    replaceWithNew(graph, node, whole->result());
    return true;
  }
  return false;
}

Result<bool> raiseNode(Graph& graph, Node* node) {
  if (node->operands().empty() || node->results().size() != 1 || !isPlain(node->result()))
    return false;
  if (node->kind == OpKind::Matmul) return raiseAttention(graph, node);
  OpKind kind = OpKind::Gelu;
  Attrs attrs;
  int64_t axis = -1;
  Value* x = geluOf(*node);
  if (!x && (x = sigmoidOf(*node))) kind = OpKind::Sigmoid;
  if (!x && (x = softmaxOf(*node, axis))) {
    kind = OpKind::Softmax;
    attrs = {{"axis", axis}};
  }
  if (!x && node->operands().size() == 2) {
    const auto norm = normOf(*node);
    if (!norm) return takeRow(graph, node);
    x = norm->x;
    kind = norm->centres ? OpKind::LayerNorm : OpKind::RmsNorm;
    attrs = {{"axis", norm->axis}, {"epsilon", norm->epsilon}};
  }
  if (!x) return false;
  CDL_ASSIGN(const Node* whole,
             graph.addNode(kind, {x}, std::move(attrs), provenanceOf(node->result(), x), node));
  replaceWithNew(graph, node, whole->result());
  return true;
}

} // namespace

Result<int> raiseComposites(Graph& graph) { return onEachNode(graph, raiseNode); }

} // namespace candela::graph::passes
