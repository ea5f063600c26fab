#include "core/passes/passes.h"

#include <algorithm>

#include "core/passes/rewrite.h"

namespace candela::passes {

namespace {

constexpr PassInfo kPasses[] = {
#define PASS(name, function, summary) {name, summary, function},
#include "core/passes/passes.inc"
#undef PASS
};
constexpr int kMaxRounds = 8;

Result<int> runOne(const PassInfo& pass, graph::Graph& graph) {
  auto count = pass.run(graph);
  if (!count) return count.status().context(pass.name);
  if (Status status = graph::verify(graph); !status) return status.context(fmt::format("after {}", pass.name));
  return count;
}

} // namespace

std::span<const PassInfo> allPasses() { return kPasses; }

Status runPasses(graph::Graph& graph, std::span<const std::string> names) {
  CDL_TRY(graph::verify(graph));
  for (const std::string& name : names) {
    const auto pass = std::ranges::find(kPasses, name, &PassInfo::name);
    if (pass == std::end(kPasses)) {
      std::string known;
      for (const PassInfo& info : kPasses) known += (known.empty() ? "" : ", ") + std::string(info.name);
      return badArgument("no pass '{}'; there are {}", name, known);
    }
    CDL_ASSIGN([[maybe_unused]] int count, runOne(*pass, graph));
  }
  return Status::ok();
}

Status optimize(graph::Graph& graph) { return optimize(graph, nullptr); }

Status optimize(graph::Graph& graph, const PassObserver& observe) {
  CDL_TRY(graph::verify(graph));
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

} // namespace candela::passes
