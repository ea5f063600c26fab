#pragma once

#include "core/compiler/quantize/network.h"

namespace candela::quantize {

/// Of a model that `rewrite` wrote: inputs and outputs that are one state become the integers that
/// they are computed with, so that nobody rounds the whole of a cache in each step. Names stay;
/// real = scale * stored. Failure: invalid_argument, naming what of a state stays float and who
/// reads or gives it so; nothing is changed then.
Status storeStates(Network& network, const std::map<std::string, std::string>& states);

} // namespace candela::quantize
