#include "tools/candela/debug/slice.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/compiler/program/dependences.h"

namespace candela::tool {
namespace {

using program::kNone;
using program::Program;
using program::Role;
using program::View;

constexpr uint64_t kGuardBytes = 64; ///< behind every buffer: NaN, or -1

bool isBound(Role role) { return role == Role::input || role == Role::inout; }

Tensor contentOf(const Program& program, uint32_t buffer, std::span<const std::byte> bytes) {
  const auto [elem, dims] = program.contentType(buffer);
  return {elem, dims, Bytes::copyOf(bytes.data(), bytes.size())};
}

/// Whether a view covers its whole buffer.
bool isWhole(const Program& program, const View& view) {
  return view.offset == 0 && view.isDense() &&
         static_cast<uint64_t>(view.count()) * static_cast<uint64_t>(elemBits(view.elem)) ==
             program.buffers[view.buffer].bytes * 8;
}

/// Whoever runs it on local memories cuts it into tiles anew: these were tiles of the whole.
void leaveLocalMemories(Program& program) {
  if (std::ranges::none_of(program.spaces, &program::Space::local)) return;
  program.spaces.resize(1);
  for (program::Buffer& buffer : program.buffers) {
    buffer.space = 0;
    if (buffer.role == Role::temp) buffer.offset = CDL_UNPLACED;
  }
}

} // namespace

Program without(const Program& whole, const std::vector<bool>& keeps) {
  Program p = whole;
  p.instrs.clear();
  p.groups.clear();
  std::vector<uint32_t> before(1, 0); // kept ones in front of each
  for (uint32_t i = 0; i < whole.instrs.size(); ++i) {
    before.push_back(before.back() + keeps[i]);
    if (!keeps[i]) continue;
    p.instrs.push_back(whole.instrs[i]);
    p.instrs.back().group = kNone;
    p.instrs.back().waits.clear();
  }
  p.loops.clear();
  std::vector<uint32_t> moved;
  for (const program::Loop& loop : whole.loops) {
    const uint32_t first = before[loop.first], count = before[loop.first + loop.count] - first;
    moved.push_back(count ? static_cast<uint32_t>(p.loops.size()) : kNone);
    if (count)
      p.loops.push_back(
          {first, count, loop.parent == kNone ? kNone : moved[loop.parent], loop.trip});
  }
  for (program::Instr& instr : p.instrs)
    if (instr.loop != kNone) instr.loop = moved[instr.loop];
  program::rebuildWaits(p);
  return p;
}

void dropUnused(Trial& trial) {
  Program& p = trial.program;
  std::vector<uint32_t> place(p.buffers.size(), kNone), constants(p.constants.size(), kNone);
  for (const program::Instr& instr : p.instrs)
    for (const auto* views : {&instr.inputs, &instr.outputs})
      for (const View& view : *views) place[view.buffer] = 0;
  std::vector<program::Buffer> buffers;
  std::vector<program::Constant> kept;
  std::vector<Tensor> inputs;
  for (uint32_t b = 0, next = 0; b < p.buffers.size(); ++b) {
    const size_t input = isBound(p.buffers[b].role) ? next++ : 0;
    if (place[b] == kNone) continue;
    place[b] = static_cast<uint32_t>(buffers.size());
    program::Buffer& buffer = buffers.emplace_back(p.buffers[b]);
    if (isBound(buffer.role)) inputs.push_back(trial.inputs[input]);
    if (buffer.constant == kNone) continue;
    if (constants[buffer.constant] == kNone) {
      constants[buffer.constant] = static_cast<uint32_t>(kept.size());
      kept.push_back(p.constants[buffer.constant]);
    }
    buffer.constant = constants[buffer.constant];
  }
  for (program::Instr& instr : p.instrs)
    for (auto* views : {&instr.inputs, &instr.outputs})
      for (View& view : *views) view.buffer = place[view.buffer];
  p.buffers = std::move(buffers);
  p.constants = std::move(kept);
  trial.inputs = std::move(inputs);
}

Trial isolate(const Program& whole, const Tape& tape, size_t execution) {
  const Tape::Execution& at = tape.executions()[execution];
  Trial trial;
  Program& p = trial.program;
  p.name = "alone";
  p.engines = whole.engines;
  p.spaces = whole.spaces;
  program::Instr instr = whole.instrs[at.instr];
  instr.waits.clear();
  instr.loop = instr.group = kNone;
  std::vector<uint32_t> origin;
  std::map<uint32_t, uint32_t> moved;
  for (auto* views : {&instr.inputs, &instr.outputs})
    for (View& view : *views) {
      for (int l = 0; l < CDL_MAX_LOOP_NESTING; ++l) {
        view.offset += view.ivStrides[l] * at.loops[l];
        view.ivStrides[l] = 0;
      }
      const auto [found, isNew] =
          moved.try_emplace(view.buffer, static_cast<uint32_t>(p.buffers.size()));
      if (isNew) {
        program::Buffer buffer = whole.buffers[view.buffer];
        if (buffer.role == Role::constant) {
          p.constants.push_back(whole.constants[buffer.constant]);
          buffer.constant = static_cast<uint32_t>(p.constants.size() - 1);
        } else {
          buffer.role = Role::inout; // operands too: who writes into them shows
          buffer.offset = 0;
          if (!buffer.halo) buffer.bytes += kGuardBytes;
          buffer.space = 0; // where bound buffers lie
        }
        p.buffers.push_back(std::move(buffer));
        origin.push_back(view.buffer);
      }
      view.buffer = found->second;
    }
  p.instrs.push_back(std::move(instr));
  for (uint32_t b = 0; b < p.buffers.size(); ++b) {
    if (!isBound(p.buffers[b].role)) continue;
    const std::span<const std::byte> bytes = tape.before(execution, origin[b]);
    std::vector<std::byte> guarded(p.buffers[b].bytes, std::byte{0xff});
    std::ranges::copy(bytes, guarded.begin());
    trial.inputs.push_back(contentOf(p, b, guarded));
  }
  leaveLocalMemories(p);
  return trial;
}

namespace {

/// Who is first and last at a buffer.
struct Use {
  uint32_t first = kNone, lastRead = kNone, lastWrite = kNone;
  bool firstIsWhole = false;
};

std::vector<Use> usesOf(const Program& p) {
  std::vector<Use> uses(p.buffers.size());
  for (uint32_t i = 0; i < p.instrs.size(); ++i) {
    for (const View& view : p.instrs[i].inputs) {
      Use& use = uses[view.buffer];
      if (use.first == kNone) use.first = i;
      use.lastRead = i;
    }
    for (const View& view : p.instrs[i].outputs) {
      Use& use = uses[view.buffer];
      if (use.first == kNone) {
        use.first = i;
        use.firstIsWhole = !p.instrs[i].inout && isWhole(p, view);
      }
      use.lastWrite = i;
    }
  }
  return uses;
}

} // namespace

Trial slice(const Program& whole, const Tape& tape, const std::vector<uint32_t>& instrs,
            bool contiguous) {
  std::vector<bool> keeps(whole.instrs.size(), false);
  for (const uint32_t i : instrs) keeps[i] = true;
  Trial trial;
  trial.program = without(whole, keeps);
  Program& p = trial.program;
  p.name = "part";

  const std::vector<Use> uses = usesOf(p);
  const std::vector<Tape::Execution>& executions = tape.executions();
  const auto firstOf = [&](uint32_t kept) { // execution
    const uint32_t instr = instrs[kept];
    return static_cast<size_t>(
        std::ranges::find_if(executions,
                             [&](const auto& execution) { return execution.instr == instr; }) -
        executions.begin());
  };
  size_t end = 0; // behind the last one that is kept
  for (size_t e = 0; e < executions.size(); ++e)
    if (keeps[executions[e].instr]) end = e + 1;

  std::vector<Tensor> want;
  for (uint32_t b = 0; b < p.buffers.size(); ++b) {
    program::Buffer& buffer = p.buffers[b];
    const Use& use = uses[b];
    if (buffer.role == Role::constant || use.first == kNone) continue;
    const bool isRead =
        use.lastRead != kNone && use.lastWrite != kNone && use.lastRead > use.lastWrite;
    if (buffer.role == Role::temp && use.firstIsWhole && isRead) continue;
    buffer.role = use.lastWrite == kNone ? Role::input : Role::inout;
    buffer.offset = 0;
    buffer.space = 0;
    trial.inputs.push_back(contentOf(p, b, tape.before(firstOf(use.first), b)));
    if (buffer.role == Role::inout) want.push_back(contentOf(p, b, tape.before(end, b)));
  }
  // Of those that are not used, to be dropped.
  std::vector<Tensor> inputs;
  for (uint32_t b = 0, next = 0; b < p.buffers.size(); ++b) {
    if (!isBound(p.buffers[b].role)) {
      if (uses[b].first == kNone && p.buffers[b].role != Role::constant)
        p.buffers[b].role = Role::temp;
      continue;
    }
    inputs.push_back(uses[b].first == kNone ? Tensor() : trial.inputs[next++]);
  }
  trial.inputs = std::move(inputs);
  dropUnused(trial);
  leaveLocalMemories(p);
  if (contiguous && tape.keepsAll()) trial.want = std::move(want);
  return trial;
}

} // namespace candela::tool
