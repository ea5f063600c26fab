#pragma once

#include "core/compiler/program/program.h"

namespace candela::test {

/// splitmix64 as a stream: the same seed gives the same numbers on every machine.
class Random {
public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u) {}
  uint64_t next() { return splitmix64(state_++); }
  /// low .. high, both included.
  int64_t in(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(next() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return in(1, 100) <= percent; }
  template <typename List> const auto& of(const List& list) {
    return list[static_cast<size_t>(in(0, static_cast<int64_t>(std::size(list)) - 1))];
  }

private:
  uint64_t state_;
};

struct RandomOptions {
  int instrs = 12;             ///< at most
  bool largeConstants = false; ///< some have more elements than the text holds in line
};

/// A Program that verify() accepts, the same for the same seed: every kind, function and element
/// type comes up, with expressions, loops, groups, halos, layouts, waits, several spaces and
/// engines, and names that need quotes. It is for looking at, not for running: what it reads was
/// mostly never written.
program::Program randomProgram(uint64_t seed, const RandomOptions& options = {});

} // namespace candela::test
