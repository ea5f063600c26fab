#pragma once

#include <string>
#include <string_view>

namespace candela::conformance::report {

/// What an unsupported case asks for, from the complaints about it: "strings", "sequences",
/// "optionals", "training", "data-dependent shapes", "run-time control flow", "media" or "random",
/// where every complaint is of such a class (then the first one's), else "other".
std::string reasonClass(std::string_view reason);

} // namespace candela::conformance::report
