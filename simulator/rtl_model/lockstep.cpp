#include "simulator/rtl_model/lockstep.h"

#include <fmt/format.h>

namespace candela::npu {
namespace {

std::string_view verbOf(RtlEvent::Kind kind) {
  constexpr std::string_view kVerbs[] = {"begins", "moves its first data", "ends"};
  return kVerbs[static_cast<size_t>(kind)];
}

int64_t cycleOf(RtlEvent::Kind kind, const InstructionTime& time) {
  switch (kind) {
  case RtlEvent::Kind::kBegin: return time.start;
  case RtlEvent::Kind::kFirstBeat: return time.firstBeat;
  default: return time.done;
  }
}

} // namespace

std::string Lockstep::textOf(const RtlEvent& event) const {
  const Result<Insn> insn = decode(binary_.code[event.instruction]);
  const std::string_view op = insn ? opInfo(static_cast<uint64_t>(insn->op))->name
                                   : std::string_view("a word that is none");
  return fmt::format("instruction {}, {}{} of {}, {}", event.instruction,
                     binary_.origin(event.instruction), op, engineName(event.engine),
                     verbOf(event.kind));
}

bool Lockstep::differ(const RtlEvent& event, const std::string& expected) {
  difference_ = fmt::format("{} in cycle {} of the hardware, {}; the last events of the hardware:",
                            textOf(event), event.cycle, expected);
  for (const RtlEvent& before : last_)
    difference_ += fmt::format("\n  cycle {}: {}", before.cycle, textOf(before));
  return false;
}

bool Lockstep::take(const RtlEvent& event) {
  const size_t engine = event.engine;
  const std::vector<InstructionTime>& times = times_[engine];
  const bool isEnd = event.kind == RtlEvent::Kind::kRetire;
  const bool isBegin = event.kind == RtlEvent::Kind::kBegin;
  size_t at = isEnd ? ended_[engine] : begun_[engine];
  if (event.kind == RtlEvent::Kind::kFirstBeat) --at; // of what has begun last
  if (at >= times.size() || times[at].instruction != event.instruction)
    return differ(event, "the model has no such instruction there");
  const int64_t expected = cycleOf(event.kind, times[at]);
  const bool isKnown = isBegin || isEnd || expected >= 0;
  if (isKnown && expected != event.cycle)
    return differ(event, fmt::format("{} of the model", expected));
  begun_[engine] += isBegin;
  ended_[engine] += isEnd;
  last_.push_back(event);
  if (last_.size() > kShown) last_.pop_front();
  return true;
}

} // namespace candela::npu
