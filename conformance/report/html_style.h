#pragma once

#include <string_view>

namespace candela::conformance::report {

/// html.css: the style of the pages. Narrow screens read a table's rows as blocks, each value
/// behind the name of its column.
extern const std::string_view kHtmlStyle;

} // namespace candela::conformance::report
