// Batch norms, factors and terms of channels become weights and bias of the product before them.
//
// Each folded weight is rounded to its type once. That is as good as what it replaces only while
// the type has the weight with all its digits, and while no large term is added that another one
// takes away again: else the nodes stay.
#include <algorithm>
#include <cmath>

#include "core/compiler/graph/passes/rewrite.h"
#include "core/reference/reference.h"
#include "core/support/float_bits.h"

namespace candela::graph::passes {

namespace {

using Doubles = std::vector<double>;

/// A batch norm, or a product or sum with constants, as y = x * scale + shift per channel.
struct Scaling {
  Doubles scale, shift;
  /// how many times as large as the spread of x is what `shift` takes away, at most
  double cancellation = 1;
  Provenance provenance; ///< of the parameters
};

/// By how much more than it would be otherwise the error of a result may grow where x * scale and
/// shift cancel: three bits of those that a narrow type has, ten of the others.
double mostCancellation(Elem elem) { return elemBits(elem) == 16 ? 8 : 1024; }

/// Of a mul or an add whose constant has one value for each channel, dim 1, or one for all.
std::optional<Scaling> constantsOf(const Node& node) {
  if (node.kind != OpKind::Mul && node.kind != OpKind::Add) return std::nullopt;
  const Value *x = node.operand(0), *constant = node.operand(1);
  const int rank = x->type.rank();
  if (rank < 2 || !isFloat(x->type.elem) || !(x->type == node.result()->type)) return std::nullopt;
  const auto numbers = numbersOf(constant);
  const size_t channels = static_cast<size_t>(x->type.dim(1));
  const bool each = numbers && constant->type.rank() >= rank - 1 && numbers->size() == channels &&
                    constant->type.dim(1 - rank) == x->type.dim(1);
  if (!numbers || (!each && numbers->size() != 1)) return std::nullopt;
  const Doubles values = each ? *numbers : Doubles(channels, (*numbers)[0]);
  if (!std::ranges::all_of(values, [](double v) { return std::isfinite(v); })) return std::nullopt;
  const Provenance& provenance = constant->producer->provenance;
  if (node.kind == OpKind::Mul) return Scaling{values, Doubles(channels, 0), 1, provenance};
  return Scaling{Doubles(channels, 1), values, 1, provenance};
}

/// Nullopt when it is in training form or its parameters are not finite constants.
Result<std::optional<Scaling>> scalingOf(const Node& node) {
  std::optional<Scaling> none;
  if (node.kind != OpKind::BatchNorm) return constantsOf(node);
  if (node.intAttr("training_mode") != 0 || node.results().size() != 1 || !isPlain(node.operand(0)))
    return none;
  Doubles params[4];
  Scaling out;
  for (int i = 0; i < 4; ++i) {
    const auto numbers = numbersOf(node.operand(i + 1));
    if (!numbers) return none;
    params[i] = *numbers;
    mergeProvenance(out.provenance, node.operand(i + 1)->producer->provenance);
  }
  const auto& [scale, bias, mean, var] = params;
  const double epsilon = node.floatAttr("epsilon");
  for (size_t c = 0; c < scale.size(); ++c) {
    const double spread = std::sqrt(var[c] + epsilon), s = scale[c] / spread;
    const double t = bias[c] - mean[c] * s;
    out.cancellation = std::max(out.cancellation, std::abs(mean[c]) / spread);
    if (!std::isfinite(s) || !std::isfinite(t)) return none;
    out.scale.push_back(s);
    out.shift.push_back(t);
  }
  return std::optional(std::move(out));
}

/// Weights and bias after scaling each output channel.
struct Folded {
  Tensor weight, bias;
};

/// Whether rounding these sums of an old bias and a shift to the type is a small matter beside the
/// shift.
bool roundsLittle(Elem elem, const Doubles& bias, const Doubles& shift) {
  for (size_t c = 0; c < bias.size(); ++c) {
    const double error = std::abs(toReal(elem, fromReal(elem, bias[c])) - bias[c]);
    if (shift[c] != 0 &&
        error > mostCancellation(elem) * precisionOf(elem) / 2 * std::abs(shift[c]))
      return false;
  }
  return true;
}

/// Of a conv or a gemm. Nullopt where weights or bias are no constants, where the type does not
/// have what becomes of them, or where gemm's c is more than one row: it would stay a full c.
Result<std::optional<Folded>> foldWeights(const Node& node, const Scaling& by) {
  const Value *w = node.operand(1), *b = node.operand(2);
  const bool gemm = node.kind == OpKind::Gemm;
  std::optional<Folded> none;
  if (!isPlainConstant(w) || (b && !isPlainConstant(b))) return none;
  if (gemm && b && b->type.rank() == 2 && b->type.dim(0) != 1) return none;
  auto weight = numbersOf(w);
  const auto old = b ? numbersOf(b) : Doubles{};
  if (!weight || !old) return none;
  const size_t channels = by.scale.size(), perChannel = channels ? weight->size() / channels : 0;
  const bool channelsLast = gemm && !node.intAttr("transB");
  for (size_t i = 0; i < weight->size(); ++i)
    (*weight)[i] *= by.scale[channelsLast ? i % channels : i / perChannel];
  Doubles bias = by.shift;
  if (b) {
    const double beta = gemm ? node.floatAttr("beta") : 1;
    for (size_t c = 0; c < channels; ++c)
      bias[c] += beta * (*old)[old->size() == 1 ? 0 : c] * by.scale[c];
  }
  const Elem elem = w->type.elem;
  if (!holdsAllWell(elem, *weight) || !holdsAllWell(elem, bias) ||
      !roundsLittle(elem, bias, by.shift))
    return none;
  Folded out;
  CDL_ASSIGN(out.weight, tensorOf(w->type.elem, w->type.shape(), *weight));
  CDL_ASSIGN(out.bias, tensorOf(w->type.elem, {static_cast<int64_t>(channels)}, bias));
  return std::optional(std::move(out));
}

/// The convolution or product with the batch norm inside; false when the two cannot become one.
Result<bool> foldIntoProducer(Graph& graph, Node* node, const Scaling& by) {
  Node* producer = node->operand(0)->producer;
  if (!producer || (producer->kind != OpKind::Conv && producer->kind != OpKind::Gemm)) return false;
  if (by.cancellation > mostCancellation(node->result()->type.elem)) return false;
  const Value* between = producer->result();
  if (between->users().size() != 1 || graph.isOutput(between)) return false;
  CDL_ASSIGN(const auto folded, foldWeights(*producer, by));
  if (!folded) return false;

  const auto weights = mergedProvenance(producer->operand(1)->producer->provenance, by.provenance);
  const auto both = mergedProvenance(producer->provenance, node->provenance);
  Attrs attrs = producer->attrs;
  attrs.erase("beta");
  std::vector<Value*> operands{producer->operand(0),
                               graph.addConstant(folded->weight, weights, node),
                               graph.addConstant(folded->bias, weights, node)};
  CDL_ASSIGN(Node * replacement,
             graph.addNode(producer->kind, std::move(operands), std::move(attrs), both, node));
  replaceWithNew(graph, node, replacement->result());
  return true;
}

/// Where x * scale + shift is about as exact as the batch norm itself. Elsewhere it stays one,
/// which subtracts the mean first, and computes halves in f32.
bool isExactAsMulAdd(Elem elem, const Scaling& by) {
  return elemBits(elem) > 16 && by.cancellation <= mostCancellation(Elem::f16_) &&
         holdsAllWell(elem, by.scale) && holdsAllWell(elem, by.shift);
}

/// y = x * scale + shift with constants of shape [c, 1, ..].
Status toMulAdd(Graph& graph, Node* node, const Scaling& by) {
  const TensorType& type = node->operand(0)->type;
  Shape dims(std::max(1, type.rank() - 1), 1);
  dims[0] = static_cast<int64_t>(by.scale.size());
  CDL_ASSIGN(const Tensor scale, tensorOf(type.elem, dims, by.scale));
  CDL_ASSIGN(const Tensor shift, tensorOf(type.elem, dims, by.shift));
  const Provenance provenance = node->provenance;
  CDL_ASSIGN(const Node* mul,
             graph.addNode(OpKind::Mul,
                           {node->operand(0), graph.addConstant(scale, by.provenance, node)}, {},
                           provenance, node));
  CDL_ASSIGN(const Node* add,
             graph.addNode(OpKind::Add,
                           {mul->result(), graph.addConstant(shift, by.provenance, node)}, {},
                           provenance, node));
  replaceWithNew(graph, node, add->result());
  return Status::ok();
}

Result<bool> foldNode(Graph& graph, Node* node) {
  if (node->operands().size() < 2 || node->results().size() != 1) return false;
  CDL_ASSIGN(const auto scaling, scalingOf(*node));
  if (!scaling) return false;
  CDL_ASSIGN(const bool folded, foldIntoProducer(graph, node, *scaling));
  if (folded || node->kind != OpKind::BatchNorm) return folded;
  if (!isExactAsMulAdd(node->result()->type.elem, *scaling)) return false;
  CDL_TRY(toMulAdd(graph, node, *scaling));
  return true;
}

} // namespace

Result<int> foldBatchNorm(Graph& graph) { return onEachNode(graph, foldNode); }

} // namespace candela::graph::passes
