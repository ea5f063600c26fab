#pragma once

#include "tools/candela/run/run.h"

namespace candela::tool {

/// A quantized model against its float one on the same inputs: the signal to noise of each layer,
/// and the layer that loses most. Throws Failure naming the model that cannot be used.
void debugLayers(const RunOptions& quantized, const std::string& floatPath, Console& console);

} // namespace candela::tool
