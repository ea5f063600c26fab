#pragma once

#include <string_view>

#include "core/compiler/import/stablehlo/program.h"

namespace candela::import::stablehlo {

/// The elements between the brackets of dense<...>: nested lists, one element for all, or their
/// bytes as a text of hex digits. One element of rank 0 where all are alike. Throws a Refusal
/// without a line.
Tensor readElements(std::string_view literal, const Type& type);

/// The same of a blob of dialect_resources, which begins with its alignment.
Tensor readResource(std::string_view hex, const Type& type);

} // namespace candela::import::stablehlo
