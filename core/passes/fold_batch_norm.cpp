#include <cmath>

#include "core/passes/rewrite.h"
#include "core/reference/reference.h"

namespace candela::passes {

namespace {

using Doubles = std::vector<double>;

Result<Doubles> doublesOf(const Value* value) {
  CDL_ASSIGN(const Tensor tensor, value->tensor());
  CDL_ASSIGN(reference::Array array, reference::fromTensor(tensor));
  return std::move(array.real);
}

/// Rounded to the element type once.
Result<Tensor> tensorOf(Elem elem, Shape dims, Doubles values) {
  reference::Array array(elem, std::move(dims));
  array.real = std::move(values);
  return reference::toTensor(array);
}

/// A batch norm as y = x * scale + shift per channel.
struct Scaling {
  Doubles scale, shift;
  graph::Provenance provenance; ///< of the parameters
};

/// Nullopt when it is in training form or its parameters are not finite constants.
Result<std::optional<Scaling>> scalingOf(const Node& node) {
  std::optional<Scaling> none;
  if (node.intAttr("training_mode") != 0 || node.results().size() != 1 || !isPlain(node.operand(0))) return none;
  Doubles params[4];
  Scaling out;
  for (int i = 0; i < 4; ++i) {
    if (!isPlainConstant(node.operand(i + 1))) return none;
    CDL_ASSIGN(params[i], doublesOf(node.operand(i + 1)));
    graph::mergeProvenance(out.provenance, node.operand(i + 1)->producer->provenance);
  }
  const auto& [scale, bias, mean, var] = params;
  const double epsilon = node.floatAttr("epsilon");
  for (size_t c = 0; c < scale.size(); ++c) {
    const double s = scale[c] / std::sqrt(var[c] + epsilon);
    const double t = bias[c] - mean[c] * s;
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

/// Of a conv or a gemm. Nullopt where weights or bias are no constants, or where gemm's c is more
/// than one row: it would stay a full c.
Result<std::optional<Folded>> foldWeights(const Node& node, const Scaling& by) {
  const Value *w = node.operand(1), *b = node.operand(2);
  const bool gemm = node.kind == OpKind::Gemm;
  std::optional<Folded> none;
  if (!isPlainConstant(w) || (b && !isPlainConstant(b))) return none;
  if (gemm && b && b->type.rank() == 2 && b->type.dim(0) != 1) return none;
  CDL_ASSIGN(Doubles weight, doublesOf(w));
  const size_t channels = by.scale.size(), perChannel = channels ? weight.size() / channels : 0;
  const bool channelsLast = gemm && !node.intAttr("transB");
  for (size_t i = 0; i < weight.size(); ++i) weight[i] *= by.scale[channelsLast ? i % channels : i / perChannel];
  Doubles bias = by.shift;
  if (b) {
    CDL_ASSIGN(const Doubles old, doublesOf(b));
    const double beta = gemm ? node.floatAttr("beta") : 1;
    for (size_t c = 0; c < channels; ++c) bias[c] += beta * old[old.size() == 1 ? 0 : c] * by.scale[c];
  }
  Folded out;
  CDL_ASSIGN(out.weight, tensorOf(w->type.elem, w->type.shape(), std::move(weight)));
  CDL_ASSIGN(out.bias, tensorOf(w->type.elem, {static_cast<int64_t>(channels)}, std::move(bias)));
  return std::optional(std::move(out));
}

/// The convolution or product with the batch norm inside; false when the two cannot become one.
Result<bool> foldIntoProducer(Graph& graph, Node* node, const Scaling& by) {
  Node* producer = node->operand(0)->producer;
  if (!producer || (producer->kind != OpKind::Conv && producer->kind != OpKind::Gemm)) return false;
  const Value* between = producer->result();
  if (between->users().size() != 1 || graph.isOutput(between)) return false;
  CDL_ASSIGN(const auto folded, foldWeights(*producer, by));
  if (!folded) return false;

  const auto weights = graph::mergedProvenance(producer->operand(1)->producer->provenance, by.provenance);
  const auto both = graph::mergedProvenance(producer->provenance, node->provenance);
  graph::Attrs attrs = producer->attrs;
  attrs.erase("beta");
  std::vector<Value*> operands{producer->operand(0), graph.addConstant(folded->weight, weights, node),
                               graph.addConstant(folded->bias, weights, node)};
  CDL_ASSIGN(Node * replacement, graph.addNode(producer->kind, std::move(operands), std::move(attrs), both, node));
  replaceWithNew(graph, node, replacement->result());
  return true;
}

/// y = x * scale + shift with constants of shape [c, 1, ..].
Status toMulAdd(Graph& graph, Node* node, const Scaling& by) {
  const graph::TensorType& type = node->operand(0)->type;
  Shape dims(std::max(1, type.rank() - 1), 1);
  dims[0] = static_cast<int64_t>(by.scale.size());
  CDL_ASSIGN(const Tensor scale, tensorOf(type.elem, dims, by.scale));
  CDL_ASSIGN(const Tensor shift, tensorOf(type.elem, dims, by.shift));
  const graph::Provenance provenance = node->provenance;
  CDL_ASSIGN(const Node* mul,
             graph.addNode(OpKind::Mul, {node->operand(0), graph.addConstant(scale, by.provenance, node)}, {},
                           provenance, node));
  CDL_ASSIGN(const Node* add, graph.addNode(OpKind::Add, {mul->result(), graph.addConstant(shift, by.provenance, node)},
                                            {}, provenance, node));
  replaceWithNew(graph, node, add->result());
  return Status::ok();
}

} // namespace

Result<int> foldBatchNorm(Graph& graph) {
  int count = 0;
  for (Node* node : graph.snapshot()) {
    if (node->kind != OpKind::BatchNorm) continue;
    CDL_ASSIGN(const auto scaling, scalingOf(*node));
    if (!scaling) continue;
    CDL_ASSIGN(const bool folded, foldIntoProducer(graph, node, *scaling));
    if (!folded) CDL_TRY(toMulAdd(graph, node, *scaling));
    ++count;
  }
  graph.eraseDead();
  return count;
}

} // namespace candela::passes
