#pragma once

#include <functional>

#include "conformance/random/recipe.h"

namespace candela::conformance::random {

/// A smaller recipe that still fails: fewer outputs and nodes, inputs instead of what was computed,
/// smaller shapes, plainer numbers. `fails` is asked at most `limit` times.
Recipe reduce(Recipe recipe, const std::function<bool(const Recipe&)>& fails, int limit = 3000);

} // namespace candela::conformance::random
