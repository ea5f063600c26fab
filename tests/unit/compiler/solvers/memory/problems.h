// Problems for the tests of the memory planner: drawn ones, and minimalloc's files.
#pragma once

#include <algorithm>
#include <fstream>
#include <random>
#include <sstream>

#include "core/compiler/solvers/memory/memory.h"

namespace candela::solvers::memory::testing {

struct Drawing {
  size_t buffers = 8;
  int64_t steps = 12;
  uint64_t size = 6;        ///< bytes, at most
  bool stackedTies = false; ///< ties with a delta, too
};

/// Every kind of constraint turns up in some. Pins and ties may contradict one another.
inline MemoryProblem drawn(std::mt19937& random, const Drawing& drawing) {
  const auto below = [&](uint64_t bound) { return random() % bound; };
  const auto chance = [&](uint64_t oneIn) { return below(oneIn) == 0; };
  MemoryProblem problem;
  const bool pins = chance(3), gaps = chance(2), ties = chance(3), aligned = chance(2);
  // halos before tied buffers overhang, as deltas do
  const bool halos = chance(3) && (drawing.stackedTies || !ties);
  if (chance(4)) problem.bankBytes = uint64_t{1} << (4 + below(2));
  while (problem.bankBytes != 0 && problem.bankBytes < drawing.size) problem.bankBytes *= 2;
  for (size_t i = 0; i < drawing.buffers; ++i) {
    Interval b;
    b.begin = static_cast<int64_t>(below(static_cast<uint64_t>(drawing.steps)));
    b.end = b.begin + 1 + static_cast<int64_t>(below(static_cast<uint64_t>(drawing.steps) / 2));
    b.size = below(drawing.size + 1);
    if (aligned) b.alignment = uint64_t{1} << below(4);
    if (halos && chance(3)) b.haloBefore = below(3);
    if (halos && chance(3)) b.haloAfter = below(3);
    if (gaps && b.end - b.begin >= 3 && chance(2)) b.gaps.push_back({b.begin + 1, b.end - 1});
    if (pins && chance(5))
      b.offset = (below(drawing.size * 2) + b.haloBefore) / b.alignment * b.alignment;
    problem.buffers.push_back(b);
  }
  if (ties)
    for (size_t i = 1; i < drawing.buffers; ++i)
      if (chance(4)) problem.ties.push_back({i, below(i), drawing.stackedTies ? below(4) * 8 : 0});
  return problem;
}

/// minimalloc's format, at its capacity.
inline MemoryProblem readInstance(const std::string& path) {
  MemoryProblem problem;
  problem.capacity = 1'048'576;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line); // the header
  while (std::getline(file, line)) {
    std::ranges::replace(line, ',', ' ');
    std::istringstream fields(line);
    int64_t id = 0;
    Interval b;
    if (fields >> id >> b.begin >> b.end >> b.size) problem.buffers.push_back(b);
  }
  return problem;
}

} // namespace candela::solvers::memory::testing
