#pragma once

#include <optional>
#include <span>

#include "core/compiler/import/stablehlo/program.h"

/// What the small regions mean that reductions, sorts and scatters take.
namespace candela::import::stablehlo {

/// How two values become one.
enum class Join : uint8_t { add, multiply, maximum, minimum, and_, or_, xor_, second };

/// How a region of (a0, a1, ..., b0, b1, ...) joins a and b into its result `index`; nullopt where
/// it does something else.
std::optional<Join> joinOf(const Region& region, size_t index);
/// Of an operation's name.
std::optional<Join> joinNamed(std::string_view operation);

/// Whether a region of two pairs chooses the larger value (or the smaller one) with its index, and
/// of equal ones the smaller index. Nullopt: neither.
std::optional<Join> extremeOf(const Region& region);

/// What a region of two values prefers: maximum where it is true for a larger first one.
std::optional<Join> preferenceOf(const Region& region);

/// The order of a comparator of (a0, b0, a1, b1, ...): how many of the pairs are keys, the first
/// one first, and whether they rise or fall.
struct Order {
  size_t keys;
  bool isRising;
};
std::optional<Order> orderOf(const Region& region);

} // namespace candela::import::stablehlo
