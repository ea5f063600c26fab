#pragma once

#include "core/runtime/bundle/bundle.h"

namespace candela::conformance::tiers::models {

/// A line per op, element type and place, in the order of the network: "12 conv f32: native on
/// cpu", "1 sort i32: host (cpu: no row of the kind)".
std::vector<std::string> manifestOf(const std::vector<runtime::bundle::NodePlacement>& placement);

/// Fails when a node is not where the rows say: on a device that compiles, what is not native fell
/// back, and so did what the backend refused late. Names every such node, with where it went.
Status checkClaims(const std::vector<runtime::bundle::NodePlacement>& placement, bool compiles);

} // namespace candela::conformance::tiers::models
