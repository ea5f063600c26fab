#include "core/compiler/graph/passes/passes.h"

#include <algorithm>
#include <ranges>

#include "core/compiler/graph/loop.h"
#include "core/compiler/graph/passes/rewrite.h"

namespace candela::graph::passes {

namespace {

constexpr PassInfo kPasses[] = {
#define PASS(name, function, effect, summary, values)                                              \
  {name, Effect::effect, summary, values, function},
#include "core/compiler/graph/passes/passes.inc"
};
constexpr PassInfo kRequestedPasses[] = {
#include "core/compiler/graph/passes/requested_passes.inc"
#undef PASS
};
constexpr int kMaxRounds = 8;

Result<int> runOne(const PassInfo& pass, Graph& graph) {
  int count = 0;
  for (Graph* each : nestedGraphs(graph)) {
    CDL_ASSIGN(const int changes, pass.run(*each).context(pass.name));
    count += changes;
  }
  CDL_TRY(verify(graph).context(fmt::format("after {}", pass.name)));
  return count;
}

} // namespace

Result<int> deadCode(Graph& graph) { return graph.eraseDead(); }

std::span<const PassInfo> allPasses() { return kPasses; }
std::span<const PassInfo> requestedPasses() { return kRequestedPasses; }

Status runPasses(Graph& graph, std::span<const std::string> names) {
  CDL_TRY(verify(graph));
  std::vector<PassInfo> known(std::begin(kPasses), std::end(kPasses));
  known.insert(known.end(), std::begin(kRequestedPasses), std::end(kRequestedPasses));
  for (const std::string& name : names) {
    const auto pass = std::ranges::find(known, name, &PassInfo::name);
    if (pass == known.end())
      return badArgument("no pass '{}'; there are {}", name,
                         fmt::join(known | std::views::transform(&PassInfo::name), ", "));
    CDL_ASSIGN([[maybe_unused]] int count, runOne(*pass, graph));
  }
  return Status::ok();
}

Status optimize(Graph& graph, const PassObserver& observe) {
  CDL_TRY(verify(graph));
  for (int round = 0; round < kMaxRounds; ++round) {
    int changes = 0;
    for (const PassInfo& pass : kPasses) {
      CDL_ASSIGN(const int count, runOne(pass, graph));
      if (count > 0 && observe) observe(pass.name, graph);
      changes += count;
    }
    if (changes == 0) break;
  }
  return Status::ok();
}

} // namespace candela::graph::passes
