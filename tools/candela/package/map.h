#pragma once

#include "tools/candela/package/model.h"

namespace candela::tool {

/// The arena of a packaged model, buffer by buffer, with what kernels take for themselves, and the
/// weights, instruction by instruction: tables for people.
std::string mapText(const PackagedModel& model);
/// The same for programs.
Json mapJson(const PackagedModel& model);

/// Where most values are alive, and how much of the arena they are: "8896 B of values at max_pool
/// [5] 'MaxPool_4', 640 B behind all values for kernels", which work in what is free before too.
std::string peakText(const PackagedModel& model);

} // namespace candela::tool
