#include <algorithm>

#include "conformance/mutants/catalogue.h"
#include "core/support/status.h"

namespace candela::conformance::mutants {
namespace {

template <typename List> const auto* named(const List& list, std::string_view name) {
  const auto found = std::ranges::find_if(list, [&](const auto& one) { return name == one.name; });
  CDL_CHECK(found != list.end(), "the matrix has no {}", name);
  return &*found;
}

} // namespace

Fault& Catalogue::add(std::string_view faultClass, std::string_view subject, Run run,
                      const std::string& variant) {
  Fault fault;
  fault.subject = named(subjects(), subject);
  fault.faultClass = named(faultClasses(), faultClass);
  fault.name = fmt::format("{}.{}{}{}", subject, faultClass, variant.empty() ? "" : ".", variant);
  fault.tier = fault.subject->tier;
  fault.run = std::move(run);
  return faults_.emplace_back(std::move(fault));
}

Fault& Catalogue::fault(std::string_view name) {
  const auto found = std::ranges::find(faults_, name, &Fault::name);
  CDL_CHECK(found != faults_.end(), "there is no fault {}", name);
  return *found;
}

const std::vector<Fault>& allFaults() {
  static const std::vector<Fault> all = [] {
    Catalogue catalogue;
    for (const auto add : {addAddressFaults, addValueFaults, addSumFaults, addQuantizedFaults,
                           addExpressionFaults, addScaledFaults, addVacuousFaults, addObjectFaults,
                           addSlotFaults, addDeviceFaults, addAsyncFaults})
      add(catalogue);
    std::vector<Fault> faults = catalogue.take();
    std::ranges::stable_sort(faults, {},
                             [](const Fault& f) { return std::pair(f.subject, f.faultClass); });
    return faults;
  }();
  return all;
}

const Fault* findFault(std::string_view name) {
  for (const Fault& fault : allFaults())
    if (fault.name == name) return &fault;
  return nullptr;
}

} // namespace candela::conformance::mutants
