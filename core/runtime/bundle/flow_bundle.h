#pragma once

#include "core/runtime/bundle/bundle.h"
#include "core/runtime/control_flow/flow.h"

namespace candela::runtime {

/// LOOP, BRANCH and the like, around bundles of their own.
struct FlowBundle {
  flow::Flow flow;
  std::vector<Bundle> units;
};

} // namespace candela::runtime
