#pragma once

#include <string>

#include "tools/candela/support/console.h"

namespace candela::tool {

/// Which request each device worked on when, as text: a row for each device of a session's trace
/// (Chrome trace JSON of candela_session_trace_json), a column for each part of the time around its
/// middle. Empty where nothing was traced.
///
///   acme:0  1111222233334444
///   acme:1  ....111122223333
std::string timelinePicture(const Json& trace);

} // namespace candela::tool
