// What a kernel does when it has run often: of each kind a case of another family, 16 times on one
// queue.
#include "conformance/tiers/primitives/again.h"

#include <set>

#include "conformance/repeated.h"
#include "conformance/report/query.h"

namespace candela::conformance::tiers::primitives {
namespace {

constexpr size_t kRuns = 16;

/// "primitives:binary/add_f32:shape=3" -> {"binary", "add_f32"}.
std::pair<std::string, std::string> kindAndRow(const std::string& address) {
  const std::string_view row = report::rowOf(address);
  const size_t kind = row.find(':') + 1, slash = row.find('/');
  return {std::string(row.substr(kind, slash - kind)), std::string(row.substr(slash + 1))};
}

} // namespace

std::vector<Case> againCases(const Selection& selection, std::span<const CasesOf> families) {
  if (selection.size == Size::quick) return {};
  // The same ones whatever is selected: the smoke of each kind, of the first row that most backends
  // have.
  Selection smoke;
  smoke.size = Size::quick;
  std::vector<Case> again;
  std::set<std::string> had;
  for (const CasesOf family : families)
    for (Case& one : family(smoke)) {
      const auto [kind, row] = kindAndRow(one.address);
      const bool isCommon = (row.find("f32") != row.npos) != (row.find("i8") != row.npos);
      if (!isCommon || !had.insert(kind).second) continue;
      again.push_back({fmt::format("primitives:again/{}_{}:runs={}", kind, row, kRuns),
                       [run = std::move(one.run)](Port& port) {
                         const Repeated repeated(kRuns);
                         return run(port);
                       }});
    }
  return again;
}

} // namespace candela::conformance::tiers::primitives
