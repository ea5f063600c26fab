#include "conformance/mutants/kill.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "conformance/port.h"
#include "conformance/report/report.h"
#include "conformance/suite.h"
#include "conformance/workers.h"

namespace candela::conformance::mutants {
namespace {

using Outcome = CaseResult::Outcome;

/// What a case may take of a mutant that hangs. On soft none takes a tenth of it.
constexpr unsigned kCaseSeconds = 6;

/// The cases of one tier and size.
struct Listing {
  std::string tier;
  Size size;
  std::vector<Case> cases;
};

/// A case by the index of its listing, and its own.
struct Place {
  uint32_t listing, index;
};

/// Which case each mutant is at, in memory that its process shares: who dies cannot say.
class Board {
public:
  static Result<Board> make(size_t count) {
    void* memory = mmap(nullptr, std::max<size_t>(count, 1) * sizeof(Place), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
      return failure(Code::internal, "no memory to share: {}", std::strerror(errno));
    return Board(static_cast<Place*>(memory), count);
  }
  Place& operator[](size_t i) const { return places_.get()[i]; }

private:
  Board(Place* places, size_t count)
      : places_(places,
                [count](Place* p) { munmap(p, std::max<size_t>(count, 1) * sizeof(Place)); }) {}
  std::shared_ptr<Place> places_;
};

/// In the order in which a mutant meets them.
std::vector<Place> routeOf(const Fault& fault, const std::vector<Listing>& listings) {
  std::vector<Place> route;
  const std::string stem = fmt::format("{}:{}/", fault.tier, fault.subject->name);
  const auto take = [&](uint32_t l, auto wanted) {
    for (uint32_t i = 0; i < listings[l].cases.size(); ++i)
      if (wanted(listings[l].cases[i].address)) route.push_back({l, i});
  };
  for (const bool own : {true, false})
    for (uint32_t l = 0; l < listings.size(); ++l) {
      if ((listings[l].tier == fault.tier) != own) continue;
      take(l, [&](const std::string& address) { return address.starts_with(stem); });
      take(l, [&](const std::string& address) { return !address.starts_with(stem); });
    }
  return route;
}

CaseResult tryMutant(const Fault& fault, const std::vector<Listing>& listings, Place& at) {
  Port faulty("soft", {{"fault", fault.name}}), right("soft");
  for (const Place place : routeOf(fault, listings)) {
    at = place;
    const Case& one = listings[place.listing].cases[place.index];
    // Ends the process, and with it the mutant. Whoever does not hang has all the time that a busy
    // machine takes.
    if (fault.hangs) alarm(kCaseSeconds);
    const CaseResult result = one.run(faulty);
    alarm(0);
    // A case that soft does not pass says nothing of the fault.
    if (result.outcome != Outcome::failed || one.run(right).outcome == Outcome::failed) continue;
    return {.outcome = Outcome::passed, .reason = result.reason};
  }
  return {.outcome = Outcome::unsupported};
}

} // namespace

Result<std::vector<Verdict>>
runMutants(const MutantOptions& options,
           const std::function<void(const Verdict&, size_t finished)>& done) {
  std::vector<Listing> listings;
  for (const Size size : {Size::quick, Size::full})
    for (const Tier& tier : allTiers()) {
      if (!options.tiers.empty() &&
          std::ranges::find(options.tiers, tier.name) == options.tiers.end())
        continue;
      Selection selection;
      selection.size = size;
      selection.onnxData = options.onnxData;
      auto cases = tier.list(selection);
      // else what it tests with is not installed
      if (cases) listings.push_back({tier.name, size, std::move(*cases)});
    }
  std::vector<const Fault*> faults;
  std::vector<std::string> names;
  size_t number = 0;
  for (const Fault& fault : allFaults()) {
    if (number++ % options.every != 0) continue;
    if (!options.query.empty() && !report::matchesQuery(fault.name, options.query)) continue;
    faults.push_back(&fault);
    names.push_back(fault.name);
  }
  CDL_ASSIGN(const Board board, Board::make(faults.size()));
  std::map<std::string, size_t> numbers;
  for (size_t i = 0; i < names.size(); ++i) numbers[names[i]] = i;
  const auto verdictOf = [&](const CaseResult& result) {
    const size_t i = numbers.at(result.name);
    Verdict verdict{.fault = faults[i], .milliseconds = result.milliseconds};
    // Out of time with all its cases: none of them found it.
    if (result.outcome == Outcome::unsupported || result.reason.starts_with("no answer"))
      return verdict;
    const Listing& listing = listings[board[i].listing];
    verdict.killed = true;
    verdict.tier = listing.tier;
    verdict.size = listing.size;
    verdict.address = listing.cases[board[i].index].address;
    verdict.reason = result.reason;
    return verdict;
  };
  const auto runOne = [&](size_t i) {
    const auto began = std::chrono::steady_clock::now();
    CaseResult result = tryMutant(*faults[i], listings, board[i]);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
    result.milliseconds = took.count();
    return result;
  };
  CDL_ASSIGN(
      const std::vector<CaseResult> results,
      runInWorkers(
          names, runOne,
          {.jobs = options.jobs, .timeLimitSeconds = options.timeLimitSeconds, .isolates = true},
          [&](const CaseResult& result, size_t finished) {
            if (done) done(verdictOf(result), finished);
          }));
  std::vector<Verdict> verdicts;
  for (const CaseResult& result : results) verdicts.push_back(verdictOf(result));
  return verdicts;
}

std::vector<std::string> matrixGaps() {
  std::vector<std::string> gaps;
  for (const Subject& subject : subjects())
    for (const FaultClass& one : faultClasses()) {
      const bool there = std::ranges::any_of(allFaults(), [&](const Fault& fault) {
        return fault.subject == &subject && fault.faultClass == &one;
      });
      if (one.applies(subject) != there)
        gaps.push_back(fmt::format("{}.{}", subject.name, one.name));
    }
  return gaps;
}

std::string matrixPage(const std::vector<Verdict>& verdicts) {
  std::string text = "| fault |";
  for (const Subject& subject : subjects()) text += " " + subject.name + " |";
  text += " what it does |\n|---|";
  for (size_t i = 0; i < subjects().size(); ++i) text += ":-:|";
  text += "---|\n";
  for (const FaultClass& one : faultClasses()) {
    text += fmt::format("| `{}` |", one.name);
    for (const Subject& subject : subjects()) {
      std::map<std::string, int> by;
      for (const Verdict& verdict : verdicts)
        if (verdict.fault->subject == &subject && verdict.fault->faultClass == &one)
          ++by[verdict.killed ? verdict.tier : "SURVIVES"];
      std::string cell;
      for (const auto& [tier, count] : by)
        cell += fmt::format("{}{}{}", cell.empty() ? "" : ", ",
                            count > 1 ? fmt::format("{} ", count) : "", tier);
      text += fmt::format(" {} |", cell.empty() ? "-" : cell);
    }
    text += fmt::format(" {} |\n", one.summary);
  }
  return text;
}

} // namespace candela::conformance::mutants
