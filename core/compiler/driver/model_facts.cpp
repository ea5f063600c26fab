#include "core/compiler/driver/pipeline.h"

#include <algorithm>
#include <span>

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

namespace {

/// "56x56"
std::string extentsText(std::span<const int64_t> extents) {
  return extents.empty() ? "scalar" : fmt::format("{}", fmt::join(extents, "x"));
}

/// x[N,C,places] and w[O,C/group,window], or transposed w[C,O/group,window].
std::string convolutionText(const graph::Node& node) {
  const Shape x = node.operand(0)->type.shape();
  const Shape w = node.operand(1)->type.shape();
  const Shape y = node.result()->type.shape();
  const int64_t group = node.intAttr("group");
  std::string text = fmt::format("{}, {}->{}, {}", extentsText(std::span(w).subspan(2)), x[1], y[1],
                                 extentsText(std::span(y).subspan(2)));
  const std::vector<int64_t> strides = node.intsAttr("strides", w.size() - 2, 1);
  const bool isEven =
      std::ranges::all_of(strides, [&](int64_t each) { return each == strides[0]; });
  if (!isEven)
    text += ", stride " + extentsText(strides);
  else if (strides[0] != 1)
    text += fmt::format(", stride {}", strides[0]);
  if (group > 1) text += fmt::format(", {} groups", group);
  if (y[0] > 1) text += fmt::format(", batch {}", y[0]);
  return text;
}

} // namespace

std::string shapeOf(const graph::Node& node) {
  const bool isConvolution = node.kind == graph::OpKind::Conv ||
                             node.kind == graph::OpKind::ConvInteger ||
                             node.kind == graph::OpKind::ConvTranspose;
  if (isConvolution) return convolutionText(node);
  const runtime::bundle::Products products = productsOf(node);
  if (products.count == 0) return extentsText(node.result()->type.shape());
  const std::string one = fmt::format("{}x{} by {}x{}", products.rows, products.terms,
                                      products.terms, products.columns);
  return products.count == 1 ? one : fmt::format("{} of {}", products.count, one);
}

} // namespace candela::driver
