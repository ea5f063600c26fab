#pragma once

#include "core/flow/flow.h"
#include "core/runtime/bundle/bundle.h"

namespace candela::runtime {

/// LOOP, BRANCH and the like, around bundles of their own.
struct FlowBundle {
  flow::Flow flow;
  std::vector<Bundle> units;
};

} // namespace candela::runtime
