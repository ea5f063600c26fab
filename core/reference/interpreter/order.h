#pragma once

#include <queue>
#include <unordered_set>

#include "core/compiler/program/program.h"

namespace candela::reference::interpreter {

/// Finds two accesses to one byte, one of which writes, that no chain of waits puts in order: on a
/// device they may come in either. What it finds does not depend on the order in which the
/// interpreter runs.
class Order {
public:
  /// Of a Program without loops.
  explicit Order(const program::Program& program) : program_(program) {}

  void begin(uint32_t instr);
  uint32_t current() const { return current_; }

  /// Who touched a byte last.
  struct Trace {
    uint32_t writer = program::kNone;
    uint32_t readers = program::kNone; ///< since then: index of the first of a list
  };
  /// The instruction that the current one should have waited for, or kNone.
  uint32_t read(Trace& trace);
  uint32_t write(Trace& trace);

private:
  struct Reader {
    uint32_t instr, next;
  };
  bool isBehind(uint32_t earlier);

  const program::Program& program_;
  uint32_t current_ = program::kNone;
  std::vector<Reader> readers_;
  std::priority_queue<uint32_t> frontier_; ///< waited for, not looked at
  std::unordered_set<uint32_t> ancestors_; ///< all those above the frontier
};

} // namespace candela::reference::interpreter
