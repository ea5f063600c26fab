#include <set>

#include "conformance/tiers/abi/abi.h"

namespace candela::conformance::tiers::abi {

Result<std::vector<Case>> abiCases(const Selection& selection) {
  std::vector<Case> cases;
  for (const auto& group : {queryChecks, tableChecks, deviceChecks, capabilityChecks, errorChecks,
                            imageChecks, bindingChecks, executableChecks, serviceChecks}) {
    std::set<std::string> seen;
    for (Named& named : group()) {
      // A smoke: the first of each kind.
      const std::string kind = named.name.substr(0, named.name.find(':'));
      if (selection.size == Size::quick && !seen.insert(kind.substr(0, kind.find('/'))).second)
        continue;
      cases.push_back({"abi:" + named.name, [check = std::move(named.check)](Port& port) {
                         if (port.isReference())
                           return CaseResult::unsupported("the reference is no plugin");
                         auto outcome = check(port);
                         return outcome ? std::move(*outcome) : CaseResult::of(outcome.status());
                       }});
    }
  }
  return cases;
}

} // namespace candela::conformance::tiers::abi
