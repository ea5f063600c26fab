// How fast the memory planner decides problems, and how near its plans come to the bytes alive at
// once.
//
// usage: memory_planning FILE.csv...
//
// Prints one JSON object per line: each file (minimalloc's format, capacity 1,048,576) by the exact
// search on one thread, then drawn problems of 10,000 buffers. Ends with 1 when a plan is missing
// or wrong.
#include <chrono>
#include <cstdio>
#include <ctime>

#include "tests/unit/compiler/solvers/memory/problems.h"

namespace candela::program::passes {
namespace {

bool measure(const std::string& name, const solvers::memory::MemoryProblem& problem,
             const solvers::memory::PlanOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const std::clock_t processor = std::clock();
  const auto plan = solvers::memory::planMemory(problem, options);
  const double processorSeconds = static_cast<double>(std::clock() - processor) / CLOCKS_PER_SEC;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  const bool valid = plan && !solvers::memory::validate(problem, *plan);
  std::printf("{\"problem\": \"%s\", \"buffers\": %zu, \"valid\": %s, \"bytes\": %llu, "
              "\"max_live_bytes\": %llu, "
              "\"nodes\": %llu, \"seconds\": %.4f, \"processor_seconds\": %.4f}\n",
              name.c_str(), problem.buffers.size(), valid ? "true" : "false",
              static_cast<unsigned long long>(plan ? plan->size : 0),
              static_cast<unsigned long long>(solvers::memory::maxLive(problem)),
              static_cast<unsigned long long>(plan ? plan->nodes : 0), took.count(),
              processorSeconds);
  std::fflush(stdout);
  return valid;
}

solvers::memory::MemoryProblem drawnLives(uint64_t seed, size_t count, int64_t steps) {
  std::mt19937_64 random(seed);
  solvers::memory::MemoryProblem problem;
  for (size_t i = 0; i < count; ++i) {
    const auto begin = static_cast<int64_t>(random() % static_cast<uint64_t>(steps));
    const auto length = 1 + static_cast<int64_t>(random() % (random() % 10 == 0 ? 50 : 5));
    problem.buffers.push_back({begin, begin + length, 64 * (1 + random() % 2000), 64});
  }
  return problem;
}

int run(int count, char** files) {
  bool good = true;
  for (int i = 0; i < count; ++i) {
    const std::string file = files[i];
    const solvers::memory::MemoryProblem problem = solvers::memory::testing::readInstance(file);
    good =
        measure(file.substr(file.rfind('/') + 1), problem, {}) && !problem.buffers.empty() && good;
  }
  for (const int64_t steps : {100, 1'000, 100'000})
    good =
        measure(fmt::format("drawn, {} steps, seed 5", steps), drawnLives(5, 10'000, steps), {}) &&
        good;
  return good ? 0 : 1;
}

} // namespace
} // namespace candela::program::passes

int main(int argc, char** argv) { return candela::program::passes::run(argc - 1, argv + 1); }
