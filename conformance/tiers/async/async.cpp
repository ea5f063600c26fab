#include "conformance/tiers/async/async.h"

#include "conformance/suite.h"

namespace candela::conformance::tiers::async {

Result<std::vector<Case>> asyncCases(const Selection& selection) {
  std::vector<Case> all;
  for (const ProbeFamilies& families :
       {waitFamilies(), timelineFamilies(), cancelFamilies(), profileFamilies()})
    for (Case& one : expand(families, selection)) all.push_back(std::move(one));
  return all;
}

} // namespace candela::conformance::tiers::async
