#pragma once

#include "conformance/report/report.h"

namespace candela::conformance::report {

/// One page that needs nothing beside it: no script, no font, no picture. It is well-formed XML
/// too.
std::string htmlPage(const Report& report);

} // namespace candela::conformance::report
