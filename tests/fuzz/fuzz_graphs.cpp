// Random graphs on several executors, each within the bounds of a running error analysis. A failure
// is reduced by itself and written to a folder.
#include <algorithm>
#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <set>

#include "conformance/random/random_graphs.h"
#include "conformance/random/run_on.h"
#include "core/compiler/graph/text.h"
#include "core/support/file.h"
#include "tests/fuzz/arguments.h"

namespace candela::conformance {
namespace {

constexpr const char* kUsage =
    R"(Usage: fuzz_graphs [--seed N] [--count N] [--backends LIST] [--out DIR]
  --seed N         the first seed (1); graph i has seed N + i
  --count N        how many graphs (300)
  --backends LIST  separated by commas, of reference, soft, template, cpu and paths of plugins, each with
                   "--to-primitives" behind a blank where that is meant
                   (reference,soft,soft --to-primitives,template,template --to-primitives,cpu)
  --out DIR        where reduced failures go (fuzz_failures)
)";

struct Arguments : FuzzArguments {
  Arguments()
      : FuzzArguments{.count = 300,
                      .backends = {"reference", "soft", "soft --to-primitives", "template",
                                   "template --to-primitives", "cpu"}} {}
};

// A crash is a finding like any other: what it leaves behind is lost, which a tool of tests can
// bear.
sigjmp_buf back;
void leap(int signal) { siglongjmp(back, signal); }
random::Finding judgeGuarded(const random::Recipe& recipe, const random::Expected& expected,
                             const random::Executor& executor) {
  constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
  if (const int signal = sigsetjmp(back, 1); signal != 0)
    return {random::Finding::Kind::crashed, fmt::format("signal {}", signal)};
  for (const int signal : kSignals) std::signal(signal, leap);
  random::Finding finding = random::judge(recipe, expected, executor);
  for (const int signal : kSignals) std::signal(signal, SIG_DFL);
  return finding;
}

class Fuzzer {
public:
  explicit Fuzzer(const Arguments& arguments) : arguments_(arguments) {}

  int run() {
    for (const std::string& name : arguments_.backends) {
      auto executor = random::executorOf(name);
      if (!executor) {
        fmt::print(stderr, "{}\n", executor.status().message());
        return 2;
      }
      executors_.push_back(std::move(executor).value());
    }
    for (uint64_t i = 0; i < arguments_.count; ++i) {
      judgeGraph(arguments_.seed + i);
      if ((i + 1) % 500 == 0) {
        fmt::print("{} graphs, {} findings\n", i + 1, findings_);
        std::fflush(stdout);
      }
    }
    report();
    return findings_ || missing_ ? 1 : 0;
  }

private:
  void judgeGraph(uint64_t seed) {
    const random::Recipe recipe = random::randomGraph(seed);
    nodes_ += recipe.steps.size();
    for (const random::Recipe::Step& step : recipe.steps) ++ops_[step.kind];
    const auto expected = random::expect(recipe);
    if (!expected) {
      note(seed, "the analysis", expected.status().message());
      return;
    }
    for (const judge::Interval& interval : expected->intervals)
      count_ += interval.count(), tight_ += interval.tight();
    std::string last;
    for (const random::Executor& executor : executors_) {
      const random::Finding finding = judgeGuarded(recipe, *expected, executor);
      if (finding.kind == random::Finding::Kind::none) continue;
      if (finding.kind == random::Finding::Kind::refused && random::mayRefuse(recipe)) {
        ++refused_[finding.text.substr(finding.text.rfind("': ") + 3)];
        continue;
      }
      note(seed, executor.name, finding.text);
      if (finding.text != last) shrink(recipe, finding.kind, executor, seed);
      last = finding.text;
    }
  }

  void note(uint64_t seed, const std::string& who, const std::string& what) {
    ++findings_;
    fmt::print("FOUND  seed {} on {}: {}\n", seed, who, what);
    std::fflush(stdout);
  }

  void shrink(const random::Recipe& recipe, random::Finding::Kind kind,
              const random::Executor& executor, uint64_t seed) {
    const std::string folder = fmt::format("{}/{}_{}", arguments_.out, seed,
                                           executor.name.substr(0, executor.name.find(' ')));
    const auto judge = [&](const random::Recipe& candidate, const random::Expected& expected) {
      return judgeGuarded(candidate, expected, executor);
    };
    const auto small = random::writeReduced(recipe, kind, judge, folder, executor.name);
    if (!small) {
      fmt::print("{}\n", small.status().message());
      return;
    }
    const auto graph = small->recipe.build();
    const auto text = graph ? graph::print(*graph) : graph.status();
    fmt::print("{} nodes are left: {}\n{}{}\n", small->recipe.steps.size(), small->finding.text,
               text ? *text : "", small->command);
    std::fflush(stdout);
  }

  void report() {
    uint64_t refused = 0;
    for (const auto& [why, times] : refused_) {
      fmt::print("{:>6} runs refused: {}\n", times, why);
      refused += times;
    }
    const double graphs = static_cast<double>(std::max<uint64_t>(1, arguments_.count));
    fmt::print(
        "{} graphs from seed {}, {:.1f} nodes each, {} findings, {} runs refused, {:.2f} % of {} "
        "elements within "
        "a tenth\n",
        arguments_.count, arguments_.seed, static_cast<double>(nodes_) / graphs, findings_, refused,
        100.0 * static_cast<double>(tight_) / static_cast<double>(std::max<int64_t>(1, count_)),
        count_);
    for (const graph::OpInfo& info : graph::allOps())
      if (ops_[info.kind] == 0 && arguments_.count >= 300 && random::isDrafted(info) &&
          !info.has(graph::kTraitRegion)) {
        fmt::print("no graph has {}\n", info.name);
        missing_ = true;
      }
  }

  const Arguments& arguments_;
  std::vector<random::Executor> executors_;
  std::map<graph::OpKind, uint64_t> ops_;
  uint64_t nodes_ = 0, findings_ = 0;
  std::map<std::string, uint64_t> refused_; ///< by reason
  int64_t count_ = 0, tight_ = 0;
  bool missing_ = false;
};

} // namespace
} // namespace candela::conformance

int main(int count, char** words) {
  candela::conformance::Arguments arguments;
  if (!candela::conformance::parseArguments(count, words, arguments)) {
    fmt::print(stderr, "{}", candela::conformance::kUsage);
    return 2;
  }
#ifdef PLUGIN_PATH
  setenv("CANDELA_PLUGIN_PATH", PLUGIN_PATH, 0); // those of this build
#endif
  return candela::conformance::Fuzzer(arguments).run();
}
