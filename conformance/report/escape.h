#pragma once

#include <string>
#include <string_view>

namespace candela::conformance::report {

/// Text or an attribute of XML or HTML. Characters that XML cannot hold, and bytes that are no
/// UTF-8, become '?'; of others that a reader would not see the number stands there.
std::string markupEscaped(std::string_view text);

} // namespace candela::conformance::report
