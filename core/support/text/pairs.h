#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace candela::text {

using NamePair = std::pair<std::string, std::string>;

/// The pairs of an input and an output that "INPUT=OUTPUT" means: of these names themselves, which
/// may hold "=" and "*"; else, where both sides hold one "*", of all names that differ in the same
/// text there. Empty: there are none.
std::vector<NamePair> pairsOf(std::string_view text, std::span<const std::string> inputs,
                              std::span<const std::string> outputs);

} // namespace candela::text
