#pragma once

#include <string>

#include "tools/candela/simulate/timeline.h"

/// The forms of a simulation's report, all made from the JSON one ("candela.simulate/1"): equal
/// reports give equal bytes.
namespace candela::tool {

/// JSON as it stands within <script> of a page: nothing in it ends the element, or begins another.
std::string scriptText(const Json& data);

/// "array.rows = 24; array.columns = 20" of a report: what no hardware has. Empty: nothing.
std::string modelOnlyOf(const Json& report);

/// One line for each layer: cycles by engine and cause, utilisation, bytes by class, energy, what
/// bounds it.
std::string layersCsv(const Json& report);

/// One page without any other file: timeline, memory, roofline, layers, energy, what-if; with
/// `other`, a report of before, both beside each other.
std::string simulationPage(const Json& report, const Timeline& timeline, const Json& memory,
                           const Json* other);

/// The layers of two reports by name, in the order of the newer one: {name, before, after} in
/// cycles, and the sums.
Json comparedLayers(const Json& report, const Json& other);

/// The sums of comparedLayers(), and at most `rows` of the layers that differ, the most first.
void printCompared(const Json& compared, const std::string& model, size_t rows, Console& console);

/// A report of `candela simulate --json` or `candela estimate --json` with time. Throws Failure
/// that names the file when it is another.
Json readSimulation(const std::string& path);

} // namespace candela::tool
