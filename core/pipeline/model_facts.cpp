#include "core/pipeline/pipeline.h"

namespace candela::pipeline {

namespace {

/// What a custom op comes apart into is not the model's.
void count(const graph::Graph& graph, runtime::Bundle& bundle) {
  for (const auto& node : graph.nodes()) {
    if (node->kind == graph::OpKind::Constant)
      bundle.parameters += node->payload->count();
    else
      ++bundle.modelNodes;
    if (node->body && node->kind != graph::OpKind::Custom) count(*node->body, bundle);
  }
}

} // namespace

runtime::Bundle describeModel(const graph::Graph& graph, const std::string& name) {
  runtime::Bundle bundle;
  bundle.model = name;
  count(graph, bundle);
  return bundle;
}

uint64_t macs(const graph::Node& node) {
  if (node.body) {
    uint64_t each = 0;
    for (const auto& inner : node.body->nodes()) each += macs(*inner);
    return node.kind == graph::OpKind::Loop ? each * static_cast<uint64_t>(node.intAttr("trips")) : each;
  }
  if (!node.info().has(graph::kTraitContraction)) return 0;
  const bool transposed = node.kind == graph::OpKind::ConvTranspose; // counts x's elements instead
  const auto outputs = static_cast<uint64_t>((transposed ? node.operand(0) : node.result())->type.count());
  const graph::TensorType& second = node.operand(1)->type;
  switch (node.kind) {
  case graph::OpKind::Conv:
  case graph::OpKind::ConvTranspose:
  case graph::OpKind::ConvInteger: // every output element sums over one filter
    return second.dim(0) == 0 ? 0 : outputs * static_cast<uint64_t>(second.count() / second.dim(0));
  case graph::OpKind::Gemm: return outputs * static_cast<uint64_t>(second.dim(node.intAttr("transB") ? 1 : 0));
  case graph::OpKind::Attention: // both products
    return static_cast<uint64_t>(node.operand(0)->type.count() + node.result()->type.count()) *
           static_cast<uint64_t>(second.dim(-2));
  default: return outputs * static_cast<uint64_t>(node.operand(0)->type.dim(-1)); // matmul, batch_matmul
  }
}

} // namespace candela::pipeline
