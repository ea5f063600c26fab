#include "conformance/tiers/models/manifest.h"

#include <algorithm>

namespace candela::conformance::tiers::models {

using runtime::bundle::NodePlacement;

namespace {

std::string placeOf(const NodePlacement& node) {
  switch (node.cls) {
  case NodePlacement::Class::host: return fmt::format("host ({})", node.why);
  case NodePlacement::Class::native: return fmt::format("native on {}", node.on);
  case NodePlacement::Class::emulated: break;
  }
  return fmt::format("emulated on {}", node.on);
}

} // namespace

std::vector<std::string> manifestOf(const std::vector<NodePlacement>& placement) {
  std::vector<std::pair<std::string, uint64_t>> groups;
  for (const NodePlacement& node : placement) {
    const std::string text = fmt::format("{}: {}", node.op, placeOf(node));
    const auto known = std::ranges::find(groups, text, &std::pair<std::string, uint64_t>::first);
    if (known == groups.end())
      groups.emplace_back(text, 1);
    else
      ++known->second;
  }
  std::vector<std::string> lines;
  for (const auto& [text, count] : groups) lines.push_back(fmt::format("{} {}", count, text));
  return lines;
}

Status checkClaims(const std::vector<NodePlacement>& placement, bool compiles) {
  std::string fallen;
  for (const NodePlacement& node : placement) {
    // What a compiling device gets was in rows that say NATIVE; the partitioner leaves the others
    // with the host.
    const bool emulated = compiles && node.cls == NodePlacement::Class::emulated;
    const bool refused = node.why.find("refused by the backend") != std::string::npos;
    if (emulated || refused)
      fallen +=
          fmt::format("{}{} ({}): {}", fallen.empty() ? "" : "; ", node.node, node.op, node.why);
  }
  if (fallen.empty()) return Status::ok();
  return failure(Code::mismatch, "fell back although its rows say NATIVE: {}", fallen);
}

} // namespace candela::conformance::tiers::models
