#pragma once

#include "tools/candela/support/console.h"

/// How far the times of a report were from what they stand for, where that was measured.
namespace candela::tool {

/// Of one way to a time: `fidelity` is fast, accurate or exact of a simulation, rtl of the hardware
/// description, estimate of `candela estimate`. {text, runs, least, most, source}: the deviations
/// of the measured runs, -0.1 for a tenth fewer cycles; `text` alone where there is nothing to
/// measure. The figures are those of margins.json.
Json marginOf(const std::string& fidelity);

/// "constants: 78 % rtl, 22 % spec", the largest share first.
std::string constantsText(const Json& provenance);

} // namespace candela::tool
