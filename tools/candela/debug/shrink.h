#pragma once

#include <chrono>
#include <functional>

#include "tools/candela/debug/slice.h"

/// From a Program that shows a fault to a small one that shows the same. Every try is a process of
/// its own.
namespace candela::tool {

/// A trial that shows a fault, and what was asked of it.
struct Suspect {
  Trial trial;
  Finding finding;
  int tries = 0;
};

class Search {
public:
  using Clock = std::chrono::steady_clock;
  Search(Question question, double seconds, std::function<void(const std::string&)> progress);

  /// Asks; counts. None once the time is over.
  Finding ask(const Trial& trial);
  bool isOver() const { return Clock::now() >= end_; }
  int tries() const { return tries_; }

private:
  Question question_;
  Clock::time_point end_;
  std::function<void(const std::string&)> progress_;
  int tries_ = 0;
};

/// Of a Program that is wrong as a whole, while each of its instructions is right alone: the few
/// that it takes. Nothing, when all of them, bound to what the tape holds, are right. `last`: the
/// execution that the tape ends with, and that was wrong.
std::optional<Suspect> findFew(const program::Program& whole, const Tape& tape,
                               std::optional<size_t> last, Search& search);

/// Fewer instructions, steps of expressions, smaller dims, smaller buffers, while it shows the same
/// fault.
void shrink(Suspect& suspect, Search& search);

} // namespace candela::tool
