#include "core/compiler/program/passes/schedule/simplify.h"

#include <algorithm>
#include <map>

#include "core/compiler/program/dependences.h"

namespace candela::program::passes::schedule {

namespace {

// ---- Removing instructions

/// Moves ranges to where their instructions went, drops the empty ones; returns the new index of
/// each. Outer ranges stay before inner ones.
template <typename Range>
std::vector<uint32_t> moveRanges(std::vector<Range>& ranges,
                                 const std::vector<uint32_t>& newIndex) {
  std::vector<uint32_t> order, moved(ranges.size(), kNone);
  for (uint32_t r = 0; r < ranges.size(); ++r) {
    Range& range = ranges[r];
    const auto begin = newIndex.begin() + range.first, end = begin + range.count;
    range.first = *std::min_element(begin, end); // kNone is above all
    range.count -= static_cast<uint32_t>(std::count(begin, end, kNone));
    if (range.count) order.push_back(r);
  }
  std::ranges::stable_sort(order, {}, [&](uint32_t r) { return ranges[r].first; });
  std::vector<Range> kept;
  for (const uint32_t r : order) {
    moved[r] = static_cast<uint32_t>(kept.size());
    kept.push_back(ranges[r]);
  }
  ranges = std::move(kept);
  return moved;
}

void removeInstrs(Program& program, const std::vector<bool>& dead) {
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < program.instrs.size(); ++i)
    if (!dead[i]) order.push_back(i);
  reorder(program, order);
}

// ---- Dead stores

/// What the instructions behind some point read, by region.
class Reads {
public:
  void add(const Program& program, const Instr& instr) {
    for (const Access& access : accessesOf(program, instr))
      if (!access.write) byRegion_[access.region].push_back(access);
  }
  bool meet(const Access& access) const {
    const auto found = byRegion_.find(access.region);
    return found != byRegion_.end() && std::ranges::any_of(found->second, [&](const Access& read) {
             return read.overlaps(access);
           });
  }

private:
  std::map<uint64_t, std::vector<Access>> byRegion_;
};

/// Stores to TEMP buffers that nothing reads afterwards. Inside of a loop the next iteration is
/// afterwards too.
void removeDeadStores(Program& program) {
  std::vector<bool> dead(program.instrs.size(), false);
  Reads reads;
  for (size_t i = program.instrs.size(); i-- > 0;) {
    const Instr& instr = program.instrs[i];
    for (const Loop& loop : program.loops)
      if (loop.parent == kNone && i + 1 == loop.first + loop.count)
        for (size_t j = loop.first; j <= i; ++j) reads.add(program, program.instrs[j]);
    const auto isDead = [&](const View& view) {
      return program.buffers[view.buffer].role == Role::temp &&
             !reads.meet(accessOf(program, instr, view, true));
    };
    dead[i] = !instr.outputs.empty() && std::ranges::all_of(instr.outputs, isDead);
    if (!dead[i]) reads.add(program, instr);
  }
  removeInstrs(program, dead);
}

// ---- Copies

/// Who touches a buffer, as instruction indices.
struct Uses {
  uint32_t firstTouch = kNone, lastWrite = kNone; ///< kNone: never
  uint32_t writers = 0;
};

std::vector<Uses> usesOf(const Program& program) {
  std::vector<Uses> uses(program.buffers.size());
  for (uint32_t i = 0; i < program.instrs.size(); ++i) {
    const Instr& instr = program.instrs[i];
    for (const View& view : instr.inputs)
      uses[view.buffer].firstTouch = std::min(uses[view.buffer].firstTouch, i);
    for (const View& view : instr.outputs) {
      Uses& use = uses[view.buffer];
      use.firstTouch = std::min(use.firstTouch, i);
      use.lastWrite = i;
      ++use.writers;
    }
  }
  return uses;
}

bool isWhole(const Program& program, const View& view) {
  const Buffer& buffer = program.buffers[view.buffer];
  return view.isDense() && view.offset == 0 && !buffer.halo && view.ivStrides[0] == 0 &&
         view.ivStrides[1] == 0 &&
         elemBytes(view.elem, static_cast<uint64_t>(view.count())) == buffer.bytes;
}

void renameBuffer(Program& program, uint32_t from, uint32_t to) {
  for (Instr& instr : program.instrs)
    for (auto* views : {&instr.inputs, &instr.outputs})
      for (View& view : *views)
        if (view.buffer == from) view.buffer = to;
}

/// Lets the buffers of a whole copy become one; false when the meaning would change.
bool elide(Program& program, uint32_t index, const std::vector<Uses>& uses) {
  const Instr& copy = program.instrs[index];
  const uint32_t source = copy.inputs[0].buffer, target = copy.outputs[0].buffer;
  Buffer &from = program.buffers[source], &to = program.buffers[target];
  if (from.space != to.space || source == target) return false;
  // Whatever else reads either of them later must find the same bytes in the one that stays.
  const bool sourceStays = uses[source].lastWrite == kNone || uses[source].lastWrite < index;
  if (!sourceStays || uses[target].writers != 1 || uses[target].firstTouch != index) return false;
  if (to.role == Role::temp) {
    if (from.role == Role::temp)
      from.alignment = std::max(from.alignment, to.alignment);
    else if (from.alignment < to.alignment)
      return false;
    renameBuffer(program, target, source);
    return true;
  }
  if (to.role != Role::output || from.role != Role::temp || to.alignment < from.alignment)
    return false;
  renameBuffer(program, source, target);
  return true;
}

void elideCopies(Program& program) {
  std::vector<bool> dead(program.instrs.size(), false);
  std::vector<Uses> uses = usesOf(program);
  for (uint32_t i = 0; i < program.instrs.size(); ++i) {
    const Instr& instr = program.instrs[i];
    if (instr.kind != CDL_KIND_COPY || instr.loop != kNone || instr.group != kNone) continue;
    if (instr.inputs[0].elem != instr.outputs[0].elem) continue;
    if (!isWhole(program, instr.inputs[0]) || !isWhole(program, instr.outputs[0])) continue;
    if (!elide(program, i, uses)) continue;
    // The copy is now from a buffer to itself: it must not count as a use.
    dead[i] = true;
    program.instrs[i].inputs.clear();
    program.instrs[i].outputs.clear();
    uses = usesOf(program);
  }
  removeInstrs(program, dead);
}

// ---- Buffers

void removeUntouchedTemps(Program& program) {
  const std::vector<Uses> uses = usesOf(program);
  std::vector<uint32_t> newIndex(program.buffers.size(), kNone);
  std::vector<Buffer> kept;
  for (size_t b = 0; b < program.buffers.size(); ++b) {
    if (program.buffers[b].role == Role::temp && uses[b].firstTouch == kNone) continue;
    newIndex[b] = static_cast<uint32_t>(kept.size());
    kept.push_back(std::move(program.buffers[b]));
  }
  program.buffers = std::move(kept);
  for (Instr& instr : program.instrs)
    for (auto* views : {&instr.inputs, &instr.outputs})
      for (View& view : *views) view.buffer = newIndex[view.buffer];
}

} // namespace

void reorder(Program& program, const std::vector<uint32_t>& order) {
  std::vector<uint32_t> newIndex(program.instrs.size(), kNone);
  std::vector<Instr> kept;
  for (const uint32_t i : order) {
    newIndex[i] = static_cast<uint32_t>(kept.size());
    kept.push_back(std::move(program.instrs[i]));
  }
  program.instrs = std::move(kept);
  const auto loops = moveRanges(program.loops, newIndex);
  const auto groups = moveRanges(program.groups, newIndex);
  for (Loop& loop : program.loops)
    if (loop.parent != kNone) loop.parent = loops[loop.parent];
  for (Instr& instr : program.instrs) {
    for (uint32_t& wait : instr.waits) wait = newIndex[wait];
    std::erase(instr.waits, kNone);
    std::ranges::sort(instr.waits);
    if (instr.loop != kNone) instr.loop = loops[instr.loop];
    if (instr.group != kNone) instr.group = groups[instr.group];
  }
}

void simplify(Program& program) {
  removeDeadStores(program);
  elideCopies(program);
  hoistInvariants(program);
  removeInstrs(program, readParts(program));
  removeInstrs(program, carryInPlace(program));
  removeUntouchedTemps(program);
}

} // namespace candela::program::passes::schedule
