// candela plan PROBLEM.csv: offsets for intervals.
#include "tools/candela/commands/plan_problem.h"

#include <thread>

#include "core/compiler/program/report/problem_file.h"
#include "core/support/file.h"
#include "tools/candela/support/ir_file.h"

namespace candela::tool {
namespace {

struct Solved {
  solvers::memory::MemoryPlan plan;
  std::string refused; ///< why no plan within the capacity is known; then `plan` is one without
};

Solved solve(solvers::memory::MemoryProblem problem, uint64_t capacity, const std::string& path) {
  solvers::memory::PlanOptions options;
  options.threads = std::max(1u, std::thread::hardware_concurrency());
  Solved solved;
  if (capacity) problem.capacity = capacity;
  Result<solvers::memory::MemoryPlan> plan = solvers::memory::planMemory(problem, options);
  if (capacity && plan.status().code() == Code::out_of_memory) {
    solved.refused = plan.status().message();
    problem.capacity = UINT64_MAX;
    plan = solvers::memory::planMemory(problem, options);
  }
  check(plan.status().context(path));
  solved.plan = std::move(*plan);
  return solved;
}

} // namespace

bool planProblem(const std::string& path, const ProblemOptions& options, Console& console,
                 Json& report) {
  Diagnostics diagnostics;
  Result<program::report::NamedProblem> parsed =
      program::report::parseProblem(check(readText(path)), path, diagnostics);
  check(diagnostics.status());
  const program::report::NamedProblem named = check(std::move(parsed));
  const auto start = std::chrono::steady_clock::now();
  const Solved solved = solve(named.problem, options.capacity, path);
  const double milliseconds = millisecondsSince(start);
  const uint64_t live = solvers::memory::maxLive(named.problem), size = solved.plan.size;
  const bool fits = solved.refused.empty(), optimal = size == solved.plan.bound;
  console.print("{}  {} buffers   size {}   max live {}   ratio {:.4f}{}   planned in {}\n",
                console.bold(path), named.ids.size(), size, live,
                live ? static_cast<double>(size) / static_cast<double>(live) : 1.0,
                optimal ? ", optimal" : "", timeText(milliseconds));
  if (options.capacity != 0) {
    std::string verdict = console.green("fits");
    if (!fits)
      verdict = console.red(live > options.capacity
                                ? fmt::format("impossible: {} bytes are live at once", live)
                                : solved.refused);
    console.print("capacity {}: {}\n", options.capacity, verdict);
  }
  if (!options.output.empty()) {
    const std::string text = program::report::solutionText(named, solved.plan);
    check(writeFile(options.output, text.data(), text.size()), kWorkFailed);
    console.print("written {}\n", options.output);
  }
  report["problem"] = path;
  report["buffers"] = named.ids.size();
  report["size"] = size;
  report["max_live"] = live;
  report["capacity"] = options.capacity ? Json(options.capacity) : Json();
  report["fits"] = fits;
  report["optimal"] = optimal;
  report["bound"] = solved.plan.bound;
  report["nodes"] = solved.plan.nodes;
  report["time_ms"] = milliseconds;
  return fits;
}

} // namespace candela::tool
