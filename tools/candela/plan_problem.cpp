// candela plan PROBLEM.csv: offsets for intervals.
#include "tools/candela/plan_problem.h"

#include <algorithm>

#include "core/plan/report/problem_file.h"
#include "core/support/file.h"
#include "tools/candela/ir_file.h"

namespace candela::tool {
namespace {

/// What answers problems: an exact search where there is a capacity. What does not fit is planned without one, so that
/// its size can be told.
Result<plan::MemoryPlan> solve(plan::MemoryProblem problem, uint64_t capacity) {
  if (capacity != 0) {
    problem.capacity = capacity;
    Result<plan::MemoryPlan> plan = plan::planMemory(problem);
    if (plan || plan.status().code() != Code::out_of_memory) return plan;
    problem.capacity = UINT64_MAX;
  }
  return plan::planMemory(problem);
}

} // namespace

bool planProblem(const std::string& path, const ProblemOptions& options, Console& console, Json& report) {
  Diagnostics diagnostics;
  Result<plan::NamedProblem> parsed = plan::parseProblem(check(readText(path)), path, diagnostics);
  check(diagnostics.status());
  const plan::NamedProblem named = check(std::move(parsed));
  const auto start = std::chrono::steady_clock::now();
  Result<plan::MemoryPlan> solved = solve(named.problem, options.capacity);
  const double milliseconds = millisecondsSince(start);
  check(solved.status().context(path));
  if (const auto wrong = plan::validate(named.problem, *solved)) fail(kWorkFailed, "{}: {}", path, *wrong);
  const uint64_t live = plan::maxLive(named.problem), size = solved->size;
  const bool fits = options.capacity == 0 || size <= options.capacity, optimal = size <= std::max(live, solved->bound);
  console.print("{}  {} buffers   size {}   max live {}   ratio {:.4f}{}   planned in {}\n", console.bold(path),
                named.ids.size(), size, live, live ? static_cast<double>(size) / static_cast<double>(live) : 1.0,
                optimal ? ", optimal" : "", timeText(milliseconds));
  if (options.capacity != 0)
    console.print("capacity {}: {}\n", options.capacity,
                  fits                      ? console.green("fits")
                  : live > options.capacity ? console.red(fmt::format("impossible: {} bytes are live at once", live))
                                            : console.red(fmt::format("{} bytes too large", size - options.capacity)));
  if (!options.output.empty()) {
    const std::string text = plan::solutionText(named, *solved);
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
  report["time_ms"] = milliseconds;
  return fits;
}

} // namespace candela::tool
