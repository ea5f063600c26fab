#include <algorithm>

#include "conformance/suite.h"
#include "conformance/tiers/primitives/again.h"
#include "conformance/tiers/primitives/families.h"

namespace candela::conformance::tiers::primitives {

random::Data dataNamed(std::string_view name) {
  constexpr std::string_view names[] = {"calm", "steps", "corners", "wide", "bits", "extremes"};
  for (size_t i = 0; i < std::size(names); ++i)
    if (names[i] == name) return static_cast<random::Data>(i);
  CDL_CHECK(false, "no data is called {}", name);
  return random::Data::calm;
}

Result<std::vector<Case>> primitiveCases(const Selection& selection) {
  std::vector<Case> all;
  const auto take = [&](std::vector<Case> cases) {
    std::ranges::move(cases, std::back_inserter(all));
  };
  constexpr CasesOf kinds[] = {copyCases,   fillCases,    convertCases, binaryCases, compareCases,
                               selectCases, gatherCases,  scatterCases, reduceCases, matmulCases,
                               unaryCases,  rescaleCases, tableCases};
  take(againCases(selection, kinds));
  for (const CasesOf family : kinds) take(family(selection));
  for (const CasesOf family : {scaledMatmulCases, roundCases, wiringCases, refusedCases})
    take(family(selection));
  return all;
}

} // namespace candela::conformance::tiers::primitives
