#include <filesystem>

#include "conformance/port.h"
#include "conformance/random/random_graphs.h"
#include "conformance/random/run_on.h"
#include "conformance/suite.h"

namespace candela::conformance::tiers {
namespace {

constexpr uint64_t kGraphs[] = {3, 50, 2000}; ///< by Size
constexpr int kReductions = 250;              ///< a case has a time limit

CaseResult runGraph(uint64_t seed, const Selection& selection, Port& port) {
  const random::Recipe recipe = random::randomGraph(seed);
  const auto expected = random::expect(recipe);
  if (!expected)
    return CaseResult::of(expected.status().context("the suite cannot judge its graph"));
  const random::Executor executor = random::executorOn(port, selection.toPrimitives);
  // Whoever dies or hangs leaves the whole graph behind.
  const std::string folder = fmt::format("{}/fuzz_{}", selection.failures, seed);
  if (!selection.failures.empty())
    if (const auto written = random::writeWhole(recipe, *expected, folder, executor.name); !written)
      return CaseResult::of(written.status());
  CaseResult result = CaseResult::passed();
  random::Finding finding = random::judge(recipe, *expected, executor, &result.work);
  std::error_code gone; // what is left behind is no failure
  if (finding.kind == random::Finding::Kind::none ||
      (finding.kind == random::Finding::Kind::refused && random::mayRefuse(recipe))) {
    if (!selection.failures.empty()) std::filesystem::remove_all(folder, gone);
    if (finding.kind == random::Finding::Kind::refused)
      return CaseResult::unsupported(finding.text);
    // What the SDK did alone says nothing of the backend.
    const auto devices = port.devices();
    if (devices && !devices->empty() && result.work.nativeNodes == 0)
      result.outcome = CaseResult::Outcome::emulated;
    return result;
  }
  result.outcome = CaseResult::Outcome::failed;
  result.reason = std::move(finding.text);
  if (selection.failures.empty()) {
    result.reason += "; --failures DIR writes it there, reduced";
    return result;
  }
  std::filesystem::remove_all(folder, gone);
  const auto again = [&](const random::Recipe& candidate, const random::Expected& expectation) {
    return random::judge(candidate, expectation, executor);
  };
  const auto small =
      random::writeReduced(recipe, finding.kind, again, folder, executor.name, kReductions);
  result.reason +=
      small ? fmt::format("; {} of {} nodes are left, {}: {}", small->recipe.steps.size(),
                          recipe.steps.size(), small->finding.text, small->command)
            : "; " + small.status().message();
  return result;
}

} // namespace

Result<std::vector<Case>> fuzzCases(const Selection& selection) {
  std::vector<Case> cases;
  // Other graphs for every seed of the suite.
  const uint64_t first = (selection.seed - 1) * kGraphs[static_cast<size_t>(Size::nightly)];
  for (uint64_t i = 1; i <= kGraphs[static_cast<size_t>(selection.size)]; ++i) {
    const uint64_t seed = first + i;
    const auto run = [seed, selection](Port& port) { return runGraph(seed, selection, port); };
    cases.push_back({fmt::format("fuzz:graph/seed={}", seed), run});
  }
  return cases;
}

} // namespace candela::conformance::tiers
