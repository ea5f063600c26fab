#include "core/pipeline/pipeline.h"

namespace candela::pipeline {

uint64_t macs(const graph::Node& node) {
  if (!node.info().has(graph::kTraitContraction)) return 0;
  const auto outputs = static_cast<uint64_t>(node.result()->type.count());
  const graph::TensorType& second = node.operand(1)->type;
  switch (node.kind) {
  case graph::OpKind::Conv:
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
