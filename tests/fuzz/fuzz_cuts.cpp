// Drawn problems of at most 12 items against every assignment: two labels must be the least, three
// within 5 %, stages the least of their order.
#include <cstdio>
#include <fstream>
#include <string>

#include <nlohmann/json.hpp>

#include "tests/fuzz/arguments.h"
#include "tests/unit/compiler/solvers/cut/problems.h"

namespace candela::solvers::cut {
namespace {

constexpr double kAllowed = 1.05; // cost of the plan over the least one

struct Arguments : conformance::FuzzArguments {
  Arguments() : FuzzArguments{.count = 200, .backends = {}} {}
  std::string json;
};

/// How often the least cost a plan costs; 2 where the least is nothing and the plan costs
/// something.
double ratioOf(uint64_t cost, uint64_t least) {
  if (cost == least) return 1;
  return least > 0 ? static_cast<double>(cost) / static_cast<double>(least) : 2;
}

/// How plans of one kind did.
struct Tally {
  std::string kind;
  uint64_t problems = 0, least = 0, saidOptimal = 0, wrong = 0;
  double worst = 1;

  void add(uint64_t seed, uint64_t cost, uint64_t best, bool isOptimal, double allowed) {
    ++problems;
    least += cost == best;
    saidOptimal += isOptimal;
    const double ratio = ratioOf(cost, best);
    worst = std::max(worst, ratio);
    const bool isWrong = cost < best || ratio > allowed || (isOptimal && cost != best);
    wrong += isWrong;
    if (isWrong)
      std::printf("seed %llu, %s: cost %llu, the least is %llu\n",
                  static_cast<unsigned long long>(seed), kind.c_str(),
                  static_cast<unsigned long long>(cost), static_cast<unsigned long long>(best));
  }
};

void judgeCut(Tally& tally, uint64_t seed, uint32_t labels, uint32_t items, double allowed) {
  const CutProblem problem = drawProblem(seed, {.mostItems = items, .labels = labels});
  const Result<CutPlan> plan = leastCut(problem, startOf(problem));
  if (!plan) {
    ++tally.wrong;
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed),
                plan.status().message().c_str());
    return;
  }
  tally.add(seed, costByPairs(problem, plan->labels), leastOfAll(problem), plan->isOptimal,
            allowed);
}

void judgeStages(Tally& tally, uint64_t seed) {
  const CutProblem problem = drawProblem(seed, {.mostItems = 10, .labels = 3});
  const std::optional<StageCost> least = leastOfAllStages(problem);
  const Result<StagePlan> plan = planStages(problem);
  if (!plan || !least) {
    tally.wrong += plan.isOk() != least.has_value();
    return;
  }
  tally.add(seed, plan->slowest, least->slowest, true, 1);
  tally.add(seed, plan->moved, least->moved, true, 1);
}

int run(const Arguments& arguments) {
  Tally two{"two labels"}, three{"three labels"}, stages{"stages"};
  for (uint64_t seed = arguments.seed; seed < arguments.seed + arguments.count; ++seed) {
    judgeCut(two, seed, 2, 12, 1);
    judgeCut(three, seed, 3, 12, kAllowed);
    judgeStages(stages, seed);
  }
  nlohmann::ordered_json kinds = nlohmann::ordered_json::array();
  uint64_t wrong = 0;
  for (const Tally& tally : {two, three, stages}) {
    wrong += tally.wrong;
    std::printf("%s: %llu problems, %llu the least, at worst %.4f of it, %llu wrong\n",
                tally.kind.c_str(), static_cast<unsigned long long>(tally.problems),
                static_cast<unsigned long long>(tally.least), tally.worst,
                static_cast<unsigned long long>(tally.wrong));
    kinds.push_back({{"kind", tally.kind},
                     {"problems", tally.problems},
                     {"least", tally.least},
                     {"said_optimal", tally.saidOptimal},
                     {"worst_ratio", tally.worst},
                     {"wrong", tally.wrong}});
  }
  if (!arguments.json.empty()) std::ofstream(arguments.json) << kinds.dump(2) << "\n";
  return wrong == 0 ? 0 : 1;
}

} // namespace
} // namespace candela::solvers::cut

int main(int argc, char** argv) {
  candela::solvers::cut::Arguments arguments;
  if (!candela::conformance::parseArguments(argc, argv, arguments, {{"--json", &arguments.json}})) {
    std::fputs("usage: fuzz_cuts [--seed N] [--count N] [--json FILE]\n", stderr);
    return 2;
  }
  return candela::solvers::cut::run(arguments);
}
