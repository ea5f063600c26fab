#include "core/compiler/driver/pipeline.h"

namespace candela::driver {

namespace {

/// What a custom op comes apart into is not the model's.
void count(const graph::Graph& graph, runtime::bundle::Bundle& bundle) {
  for (const auto& node : graph.nodes()) {
    if (node->kind == graph::OpKind::Constant)
      bundle.parameters += node->payload->count();
    else
      ++bundle.modelNodes;
    if (node->body && node->kind != graph::OpKind::Custom) count(*node->body, bundle);
  }
}

} // namespace

runtime::bundle::Bundle describeModel(const graph::Graph& graph, const std::string& name) {
  runtime::bundle::Bundle bundle;
  bundle.model = name;
  count(graph, bundle);
  return bundle;
}

uint64_t macs(const graph::Node& node) {
  if (node.body) {
    uint64_t each = 0;
    for (const auto& inner : node.body->nodes()) each += macs(*inner);
    return node.kind == graph::OpKind::Loop ? each * static_cast<uint64_t>(node.intAttr("trips"))
                                            : each;
  }
  if (!node.info().has(graph::kTraitContraction)) return 0;
  const graph::TensorType &first = node.operand(0)->type, &second = node.operand(1)->type;
  if (node.kind == graph::OpKind::ConvTranspose) // every element of x meets one filter
    return second.dim(0) == 0
               ? 0
               : static_cast<uint64_t>(first.count() * (second.count() / second.dim(0)));
  if (node.kind == graph::OpKind::Attention) // both products
    return static_cast<uint64_t>((first.count() + node.result()->type.count()) * second.dim(-2));
  return productsOf(node).macs();
}

runtime::bundle::Products productsOf(const graph::Node& node) {
  if (node.body || !node.info().has(graph::kTraitContraction)) return {};
  const graph::TensorType &first = node.operand(0)->type, &second = node.operand(1)->type;
  int64_t count = 1, terms = 0, columns = 0;
  switch (node.kind) {
  case graph::OpKind::ConvTranspose:
  case graph::OpKind::Attention: return {};
  case graph::OpKind::Conv:
  case graph::OpKind::ConvInteger: // every output element sums over one filter
    if (second.dim(0) == 0) return {};
    count = node.intAttr("group");
    terms = second.count() / second.dim(0);
    columns = second.dim(0) / count;
    break;
  case graph::OpKind::Gemm:
    terms = second.dim(node.intAttr("transB") ? 1 : 0);
    columns = second.dim(node.intAttr("transB") ? 0 : 1);
    break;
  case graph::OpKind::ScaledMatmul: // of w[n, blocks, block]
    terms = first.dim(-1);
    columns = second.dim(0);
    break;
  default: // matmul, batch_matmul: what the second operand has none of is rows of one product
    terms = first.dim(-1);
    columns = second.rank() > 1 ? second.dim(-1) : 1;
    for (int i = 0; i + 2 < second.rank(); ++i) count *= second.dim(i);
  }
  if (count * columns == 0) return {};
  const auto size = [](int64_t value) { return static_cast<uint64_t>(value); };
  return {size(count), size(node.result()->type.count() / (count * columns)), size(terms),
          size(columns)};
}

} // namespace candela::driver
