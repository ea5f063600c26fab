#include "core/reference/reference.h"

namespace candela::reference {

Result<std::vector<Tensor>> evaluateCustom(const graph::Node& node,
                                           std::span<const Tensor> operands) {
  if (node.body) return run(*node.body, operands);
  return failure(Code::unsupported,
                 "only '{}' knows what {} means: it claims the op and gives no decomposition, so "
                 "there is no reference",
                 node.stringAttr("plugin"), node.stringAttr("op"));
}

} // namespace candela::reference
