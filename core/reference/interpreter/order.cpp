#include "core/reference/interpreter/order.h"

namespace candela::reference::interpreter {

using program::kNone;

void Order::begin(uint32_t instr) {
  current_ = instr;
  frontier_ = {};
  ancestors_.clear();
  for (const uint32_t wait : program_.instrs[instr].waits) frontier_.push(wait);
}

bool Order::isBehind(uint32_t earlier) {
  if (earlier == kNone || earlier == current_) return true;
  while (!frontier_.empty() && frontier_.top() >= earlier) {
    const uint32_t instr = frontier_.top();
    frontier_.pop();
    if (!ancestors_.insert(instr).second) continue;
    for (const uint32_t wait : program_.instrs[instr].waits)
      if (!ancestors_.count(wait)) frontier_.push(wait);
  }
  return ancestors_.count(earlier) > 0;
}

uint32_t Order::read(Trace& trace) {
  if (!isBehind(trace.writer)) return trace.writer;
  if (trace.readers == kNone || readers_[trace.readers].instr != current_) {
    readers_.push_back({current_, trace.readers});
    trace.readers = static_cast<uint32_t>(readers_.size() - 1);
  }
  return kNone;
}

uint32_t Order::write(Trace& trace) {
  if (!isBehind(trace.writer)) return trace.writer;
  for (uint32_t r = trace.readers; r != kNone; r = readers_[r].next)
    if (!isBehind(readers_[r].instr)) return readers_[r].instr;
  trace = {current_, kNone};
  return kNone;
}

} // namespace candela::reference::interpreter
