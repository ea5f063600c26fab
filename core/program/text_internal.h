#pragma once

#include "core/program/verify_internal.h"

/// What printer and parser must agree on.
namespace candela::program {

inline constexpr std::string_view kRoles[] = {"temp", "input", "output", "inout", "state", "constant"};
inline constexpr std::string_view kPadContents[] = {"undefined", "zero", "zero_point"};
/// How layouts of logical rank 4 spell their dims; others use numbers.
inline constexpr std::string_view kDimLetters = "nchw";

/// The product of the factors of the same dim that stand further inside: the N of `c/N`. Wraps on a
/// layout that was not verified.
uint64_t innerFactor(const std::vector<Layout::Step>& steps, size_t index);

} // namespace candela::program
