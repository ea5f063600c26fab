#pragma once

#include <array>
#include <map>
#include <span>

#include "conformance/case.h"

/// Counting results.
namespace candela::conformance::report {

inline constexpr std::array<const char*, 6> kOutcomeNames = {"passed", "failed",   "unsupported",
                                                             "xfail",  "emulated", "mistrusted"};
inline const char* outcomeName(CaseResult::Outcome outcome) {
  return kOutcomeNames[static_cast<size_t>(outcome)];
}
/// nullopt when there is none of this name.
std::optional<CaseResult::Outcome> outcomeNamed(std::string_view name);

struct Tally {
  uint64_t total = 0, rawPassed = 0;
  std::array<uint64_t, kOutcomeNames.size()> counts{}; ///< by outcome; they add up to the total
  Work work;
  double milliseconds = 0; ///< summed over the cases

  uint64_t operator[](CaseResult::Outcome outcome) const {
    return counts[static_cast<size_t>(outcome)];
  }
  void add(const CaseResult& result);
};
Tally tallyOf(std::span<const CaseResult> results);

using Tallies = std::vector<std::pair<std::string, Tally>>;
/// In the order in which they first appear.
Tallies tallyByTier(std::span<const CaseResult> results);
/// Of rows: of cases whose address has two colons, by what stands before the second one.
Tallies tallyByRow(std::span<const CaseResult> results);

double ratioOf(uint64_t part, uint64_t whole);

/// What a backend does itself.
struct Native {
  Work work;              ///< of the tiers that run graphs
  uint64_t rows = 0;      ///< of the tiers of single instructions
  uint64_t wholeRows = 0; ///< of which every trusted case passed
  double rowShare = 0;    ///< mean over the rows of the share of their trusted cases that passed
};
Native nativeOf(std::span<const CaseResult> results);

/// How many unsupported cases there are for each reasonClass().
std::map<std::string, uint64_t> unsupportedByClass(std::span<const CaseResult> results);

} // namespace candela::conformance::report
