#pragma once

#include "core/runtime/bundle/bundle.h"
#include "core/runtime/control_flow/flow.h"

namespace candela::runtime::bundle {

/// LOOP, BRANCH and the like, around bundles of their own.
struct FlowBundle {
  control_flow::Flow flow;
  std::vector<Bundle> units;
};

} // namespace candela::runtime::bundle
