#pragma once

#include <map>
#include <string>
#include <string_view>

namespace candela::tool {

/// The text with each @NAME@ of `values` replaced by its value; what a value holds stays as it is.
std::string filledTemplate(std::string_view text,
                           const std::map<std::string_view, std::string>& values);

} // namespace candela::tool
