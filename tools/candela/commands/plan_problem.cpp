// candela plan PROBLEM.csv: offsets for intervals.
#include "tools/candela/commands/plan_problem.h"

#include <thread>

#include "core/compiler/program/report/problem_file.h"
#include "core/support/file.h"
#include "tools/candela/support/ir_file.h"

namespace candela::tool {
namespace {

struct Solved {
  plan::MemoryPlan plan;
  std::string refused; ///< why no plan within the capacity is known; then `plan` is one without
};

Solved solve(plan::MemoryProblem problem, uint64_t capacity, const std::string& path) {
  plan::PlanOptions options;
  options.threads = std::max(1u, std::thread::hardware_concurrency());
  Solved solved;
  if (capacity) problem.capacity = capacity;
  Result<plan::MemoryPlan> plan = plan::planMemory(problem, options);
  if (capacity && plan.status().code() == Code::out_of_memory) {
    solved.refused = plan.status().message();
    problem.capacity = UINT64_MAX;
    plan = plan::planMemory(problem, options);
  }
  check(plan.status().context(path));
  solved.plan = std::move(*plan);
  return solved;
}

} // namespace

bool planProblem(const std::string& path, const ProblemOptions& options, Console& console,
                 Json& report) {
  Diagnostics diagnostics;
  Result<plan::NamedProblem> parsed = plan::parseProblem(check(readText(path)), path, diagnostics);
  check(diagnostics.status());
  const plan::NamedProblem named = check(std::move(parsed));
  const auto start = std::chrono::steady_clock::now();
  const Solved solved = solve(named.problem, options.capacity, path);
  const double milliseconds = millisecondsSince(start);
  const uint64_t live = plan::maxLive(named.problem), size = solved.plan.size;
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
    const std::string text = plan::solutionText(named, solved.plan);
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
