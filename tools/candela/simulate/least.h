#pragma once

#include "simulator/config/configuration.h"
#include "tools/candela/simulate/measure.h"

/// How far a layer is from what the device needs for it at least.
namespace candela::tool {

/// Adds to each layer `least_cycles`, `least_by` (array, dram or second) and `of_least`: its own
/// cycles through these. The array multiplies rows x columns of the second operand at a time, and
/// loads the next ones meanwhile, or, where sums stay in it, has rows x columns of the result at a
/// time and takes a term of each in a cycle; the buses of the memories move the bytes that the
/// layer moves. A layer whose products are not known (`placement`: candela.placement/1) has none of
/// the three, nor has one that neither multiplies nor moves.
void addLeastCycles(Measured& measured, const Json& placement, const npu::Configuration& npu);

/// "1.14" of a layer; empty where it has no least.
std::string ofLeastText(const Json& layer);

/// The sum over the layers; none where one that multiplies has no least.
std::optional<uint64_t> leastCycles(const Json& layers);

} // namespace candela::tool
