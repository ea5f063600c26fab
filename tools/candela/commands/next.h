#pragma once

#include "tools/candela/run/run.h"

namespace candela::tool {

/// What `backend` should implement next for these models, heaviest first: each runs on random
/// inputs, what its instructions took is measured. Prints it; `model` says what --dim, --shape and
/// --option do.
Json nextSteps(const std::vector<std::string>& models, const ModelOptions& model,
               const std::string& backend, Console& console);

} // namespace candela::tool
