// Random graphs made of what passes rewrite: each pass alone and all of them on the oracle, and
// compiled on backends, each within the bounds of a running error analysis of the graph as it was.
// A failure is reduced by itself and written to a folder.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include "conformance/port.h"
#include "conformance/random/reduce.h"
#include "conformance/random/run_on.h"
#include "core/compiler/graph/loop.h"
#include "core/compiler/graph/passes/passes.h"
#include "core/compiler/graph/text.h"
#include "core/support/file.h"
#include "tests/fuzz/arguments.h"
#include "tests/fuzz/rewrite_bounds.h"
#include "tests/fuzz/rewrite_graphs.h"

namespace candela::conformance {
namespace {

constexpr const char* kUsage =
    R"(Usage: fuzz_rewrites [--seed N] [--count N] [--backends LIST] [--out DIR] [--json FILE] [--stop-at N]
  --seed N         the first seed (1); graph i has seed N + i, and motifs of the passes in turn
  --count N        how many graphs (1000)
  --backends LIST  separated by commas (soft,cpu); "" for none: the passes on the oracle alone
  --out DIR        where reduced failures go (fuzz_failures)
  --json FILE      what was counted
  --stop-at N      end after so many findings
)";

struct Arguments : FuzzArguments {
  Arguments() : FuzzArguments{.count = 1000, .backends = {"soft", "cpu"}} {}
  std::string json, stopAt;
};

volatile std::sig_atomic_t running = 0; ///< the seed of now
void sayWhere(int) {
  char text[] = "crashed at seed 0000000000\n";
  long seed = running;
  for (size_t at = sizeof(text) - 3; text[at] != ' '; --at, seed /= 10)
    text[at] = static_cast<char>('0' + seed % 10);
  const auto written = write(STDERR_FILENO, text, sizeof(text) - 1);
  _exit(written > 0 ? 3 : 4);
}

/// Runs the recipe somehow; `who` is told what did it.
struct Runner {
  std::string name;
  std::function<Result<std::vector<Tensor>>(const random::Recipe&)> run;
};

random::Finding judge(const random::Recipe& recipe, const random::Expected& expected,
                      const Result<std::vector<Tensor>>& got) {
  if (!got)
    return {got.status().code() == Code::unsupported ? random::Finding::Kind::refused
                                                     : random::Finding::Kind::failed,
            got.status().message()};
  for (size_t i = 0; i < got->size(); ++i)
    if (const std::string text = outsideOfRewrites(expected.intervals[i], (*got)[i]); !text.empty())
      return {random::Finding::Kind::wrong, fmt::format("output y{}: {}", recipe.outputs[i], text)};
  return {};
}

Result<int> runPass(const graph::passes::PassInfo& pass, graph::Graph& graph) {
  int changes = 0;
  for (graph::Graph* each : graph::nestedGraphs(graph)) {
    CDL_ASSIGN(const int count, pass.run(*each));
    changes += count;
  }
  CDL_TRY(graph::verify(graph));
  return changes;
}

Runner passAlone(const graph::passes::PassInfo& pass) {
  return {std::string(pass.name),
          [&pass](const random::Recipe& recipe) -> Result<std::vector<Tensor>> {
            CDL_ASSIGN(graph::Graph graph, recipe.build());
            CDL_TRY(runPass(pass, graph).status());
            return reference::run(graph, recipe.inputs());
          }};
}
Runner noPass() {
  return {"the oracle", [](const random::Recipe& recipe) -> Result<std::vector<Tensor>> {
            CDL_ASSIGN(const graph::Graph graph, recipe.build());
            return reference::run(graph, recipe.inputs());
          }};
}
Runner allPassesTogether() {
  return {"all passes", [](const random::Recipe& recipe) -> Result<std::vector<Tensor>> {
            CDL_ASSIGN(graph::Graph graph, recipe.build());
            CDL_TRY(graph::passes::optimize(graph));
            return reference::run(graph, recipe.inputs());
          }};
}

class Fuzzer {
public:
  explicit Fuzzer(const Arguments& arguments) : arguments_(arguments) {}

  int run() {
    for (const graph::passes::PassInfo& pass : graph::passes::allPasses())
      alone_.push_back(passAlone(pass));
    for (const std::string& name : arguments_.backends) {
      if (name.empty()) continue;
      auto executor = random::executorOf(name);
      if (!executor) {
        fmt::print(stderr, "{}\n", executor.status().message());
        return 2;
      }
      backends_.push_back({name, [run = executor->run](const random::Recipe& recipe) {
                             Work work;
                             return run(recipe, work);
                           }});
    }
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
      std::signal(signal, sayWhere);
    const uint64_t most = arguments_.stopAt.empty()
                              ? ~uint64_t{0}
                              : std::strtoull(arguments_.stopAt.c_str(), nullptr, 10);
    for (uint64_t i = 0; i < arguments_.count && findings_ < most; ++i) {
      running = static_cast<std::sig_atomic_t>(arguments_.seed + i);
      judgeGraph(arguments_.seed + i);
      ++graphs_;
      if ((i + 1) % 1000 == 0) {
        fmt::print("{} graphs, {} findings\n", i + 1, findings_);
        std::fflush(stdout);
      }
    }
    report();
    return findings_ || isIdle() ? 1 : 0;
  }

private:
  void judgeGraph(uint64_t seed) {
    const std::string_view pass = rewritePasses()[seed % rewritePasses().size()];
    const random::Recipe recipe = rewriteGraph(pass, seed);
    nodes_ += recipe.steps.size();
    const auto expected = random::expect(recipe, analyzeRewrites);
    if (!expected) return note(seed, "the analysis", expected.status().message());
    for (const judge::Interval& interval : expected->intervals) {
      elements_ += static_cast<uint64_t>(interval.count()),
          tight_ += static_cast<uint64_t>(interval.tight());
      for (int64_t i = 0; i < interval.count(); ++i) wild_ += interval.isWild(i);
    }
    const uint64_t before = findings_;
    judgeRunner(seed, recipe, *expected, oracle_); // which lies within its own bounds
    judgePasses(seed, recipe, *expected);
    if (findings_ != before) return; // backends run the same passes
    for (const Runner& backend : backends_) judgeRunner(seed, recipe, *expected, backend);
  }

  void judgePasses(uint64_t seed, const random::Recipe& recipe, const random::Expected& expected) {
    for (size_t p = 0; p < alone_.size(); ++p) {
      auto graph = recipe.build();
      const auto changes =
          graph ? runPass(graph::passes::allPasses()[p], *graph) : Result<int>(graph.status());
      if (changes && *changes == 0) continue;
      ++changed_[alone_[p].name];
      judgeRunner(seed, recipe, expected, alone_[p]);
    }
    auto graph = recipe.build();
    if (graph)
      (void)graph::passes::optimize(*graph, [&](std::string_view pass, const graph::Graph&) {
        ++changedInAll_[std::string(pass)];
      });
    judgeRunner(seed, recipe, expected, together_);
  }

  void judgeRunner(uint64_t seed, const random::Recipe& recipe, const random::Expected& expected,
                   const Runner& runner) {
    const random::Finding finding = judge(recipe, expected, runner.run(recipe));
    if (finding.kind == random::Finding::Kind::none) return;
    if (finding.kind == random::Finding::Kind::refused && random::mayRefuse(recipe)) {
      ++refused_;
      return;
    }
    note(seed, runner.name, finding.text);
    if (kinds_[runner.name]++ < kMostReduced) shrink(recipe, finding.kind, runner, seed);
  }

  void note(uint64_t seed, const std::string& who, const std::string& what) {
    ++findings_;
    fmt::print("FOUND  seed {} by {}: {}\n", seed, who, what);
    std::fflush(stdout);
  }

  void shrink(const random::Recipe& recipe, random::Finding::Kind kind, const Runner& runner,
              uint64_t seed) {
    const auto judgeAgain = [&](const random::Recipe& candidate, const random::Expected& expected) {
      return judge(candidate, expected, runner.run(candidate));
    };
    const random::Recipe small = random::reduce(
        recipe,
        [&](const random::Recipe& candidate) {
          const auto expected = random::expect(candidate, analyzeRewrites);
          return expected && judgeAgain(candidate, *expected).kind == kind;
        },
        600);
    const auto expected = random::expect(small, analyzeRewrites);
    const auto graph = small.build();
    if (!expected || !graph) return;
    std::string folder = fmt::format("{}/{}_{}", arguments_.out, runner.name, seed);
    std::ranges::replace(folder, ' ', '_');
    const bool onBackend =
        std::ranges::find(backends_, runner.name, &Runner::name) != backends_.end();
    const auto command =
        random::writeWhole(small, *expected, folder, onBackend ? runner.name : "soft");
    const auto text = graph::print(*graph);
    fmt::print("{} nodes are left: {}\n{}{}\n", small.steps.size(),
               judgeAgain(small, *expected).text, text ? *text : "",
               command ? *command : command.status().message());
    std::fflush(stdout);
  }

  /// A pass that the graphs give too little to do is not tested.
  bool isIdle() {
    if (arguments_.count < 500 || graphs_ < arguments_.count) return false;
    bool idle = false;
    for (const Runner& pass : alone_) {
      const uint64_t least = arguments_.count / 50;
      if (changed_[pass.name] >= least) continue;
      fmt::print("{} changed {} graphs, at least {} are wanted\n", pass.name, changed_[pass.name],
                 least);
      idle = true;
    }
    return idle;
  }

  void report() {
    const auto share = [](uint64_t part, uint64_t all) {
      return 100.0 * static_cast<double>(part) / static_cast<double>(std::max<uint64_t>(1, all));
    };
    fmt::print("{} graphs from seed {}, {} nodes, {} findings, {} runs refused; of {} elements "
               "{:.2f} % within a tenth, "
               "{:.2f} % may be anything\n",
               graphs_, arguments_.seed, nodes_, findings_, refused_, elements_,
               share(tight_, elements_), share(wild_, elements_));
    std::string list;
    for (const Runner& pass : alone_) {
      fmt::print("{:<22} changed {:>6} graphs alone, {:>6} times among all\n", pass.name,
                 changed_[pass.name], changedInAll_[pass.name]);
      list += fmt::format(
          "{}\n    {{\"pass\": \"{}\", \"graphs_changed\": {}, \"times_among_all\": {}}}",
          list.empty() ? "" : ",", pass.name, changed_[pass.name], changedInAll_[pass.name]);
    }
    if (arguments_.json.empty()) return;
    const std::string text = fmt::format(
        "{{\"seed\": {}, \"graphs\": {}, \"nodes\": {}, \"findings\": {}, \"refused\": {}, "
        "\"elements\": {}, "
        "\"within_a_tenth\": {}, \"anything\": {},\n  \"passes\": [{}]}}\n",
        arguments_.seed, graphs_, nodes_, findings_, refused_, elements_, tight_, wild_, list);
    if (const Status status = writeFile(arguments_.json, text.data(), text.size()); !status.isOk())
      fmt::print(stderr, "{}\n", status.message());
  }

  static constexpr uint64_t kMostReduced = 5; ///< of a pass or backend
  const Arguments& arguments_;
  std::vector<Runner> alone_, backends_;
  const Runner oracle_ = noPass(), together_ = allPassesTogether();
  std::map<std::string, uint64_t> changed_, changedInAll_, kinds_;
  uint64_t graphs_ = 0, nodes_ = 0, findings_ = 0, refused_ = 0, elements_ = 0, tight_ = 0,
           wild_ = 0;
};

} // namespace
} // namespace candela::conformance

int main(int count, char** words) {
  candela::conformance::Arguments arguments;
  if (!candela::conformance::parseArguments(
          count, words, arguments,
          {{"--json", &arguments.json}, {"--stop-at", &arguments.stopAt}})) {
    fmt::print(stderr, "{}", candela::conformance::kUsage);
    return 2;
  }
#ifdef PLUGIN_PATH
  setenv("CANDELA_PLUGIN_PATH", PLUGIN_PATH, 0); // those of this build
#endif
  return candela::conformance::Fuzzer(arguments).run();
}
