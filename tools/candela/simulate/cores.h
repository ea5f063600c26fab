#pragma once

#include "simulator/config/configuration.h"
#include "tools/candela/support/console.h"

/// What a report says of an NPU with several cores: how much of the time each computes and what it
/// waits for, and how each layer is split.
namespace candela::tool {

/// Names each layer's split, `split`: "batch", "rows", "channels" or "none", from the parts that
/// the backend told, which go. `images`: of a batch, at least 1.
void nameSplits(Json& layers, int64_t images);

/// `cores` of a report that has its `time`, where there are several.
void addCores(Json& report, const npu::Configuration& npu);
/// The same as lines.
void printCores(const Json& report, Console& console);

/// The engines whose instructions a timeline has, by row.
std::vector<std::string> timelineEngines(const Json& report);

} // namespace candela::tool
