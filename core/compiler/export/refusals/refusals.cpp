#include "core/compiler/export/refusals/refusals.h"

#include "core/compiler/graph/custom.h"

namespace candela::exporter {

void Refusals::add(const graph::Node& node, std::string_view why) {
  lines_.push_back(fmt::format("{} '{}': {}", graph::shownOp(node), node.userName(), why));
}

Status Refusals::status(std::string_view format) const {
  if (lines_.empty()) return Status::ok();
  const char* plural = lines_.size() == 1 ? "" : "s";
  return failure(Code::unsupported, "{} node{} cannot be said in {}:\n  {}", lines_.size(), plural,
                 format, fmt::join(lines_, "\n  "));
}

} // namespace candela::exporter
