#pragma once

#include "core/support/elem.h"

/// How far one element of a result may be from the number that is meant. Primitives, ops and what
/// is composed of them are judged by the same rules.
namespace candela::conformance::judge {

/// Half a step at 1: what one rounding may change, relative.
double unitOf(Elem elem);
/// The least number above 0; 0 where a type has none.
double leastOf(Elem elem);
/// Below it numbers lose digits.
double leastNormalOf(Elem elem);
/// Distance from the number to the next one of the type that is farther from zero.
double ulpAt(Elem elem, double value);

/// How much a function of a value of this size may be off, in units of unitOf() relative to it,
/// besides one leastOf(): what a required function computes to, or what the decomposition of an
/// optional one does.
double functionUnits(uint16_t kind, uint16_t fn, Elem elem, double size);

/// How an instruction's result on one element compares with the number that the oracle has before
/// rounding.
struct ElementRule {
  enum class Kind : uint8_t {
    rounded, ///< to the nearest number, ties to even
    ulp,     ///< `ulp` units in the last place off, by a required row (spec/primitives.toml)
    units,   ///< functionUnits() off: an optional function
  };
  Kind kind = Kind::rounded;
  double ulp = 0;
};
ElementRule elementRule(uint16_t kind, uint16_t fn, Elem elem);

} // namespace candela::conformance::judge
