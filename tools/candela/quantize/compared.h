#pragma once

#include "tools/candela/support/console.h"

namespace candela::tool {

/// Two reports of `candela quantize --json` beside each other: the signal to noise of each value,
/// what the second one loses most first, and the nodes that stay float in one of them. For the
/// terminal, as JSON, and as a page where `html` names a file. Throws Failure naming the file that
/// is no such report.
void compareReports(const std::string& first, const std::string& second, const std::string& html,
                    Console& console);

} // namespace candela::tool
