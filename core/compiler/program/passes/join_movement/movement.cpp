#include "core/compiler/program/passes/join_movement/movement.h"

#include <algorithm>

#include "core/compiler/program/dependences.h"
#include "core/compiler/program/passes/join_movement/through.h"
#include "core/compiler/program/passes/schedule/described.h"
#include "core/compiler/program/passes/schedule/lifetimes.h"
#include "core/compiler/program/passes/schedule/simplify.h"

namespace candela::program::passes::join_movement {

namespace {

/// Kinds that walk all their views over the dims of the result.
bool isElementwise(uint16_t kind) {
  switch (kind) {
  case CDL_KIND_CONVERT:
  case CDL_KIND_BINARY:
  case CDL_KIND_COMPARE:
  case CDL_KIND_SELECT:
  case CDL_KIND_UNARY:
  case CDL_KIND_RESCALE:
  case CDL_KIND_ELEMENTWISE: return true;
  default: return false;
  }
}

class Mover {
public:
  Mover(Program& program, const capabilities::Target& target)
      : program_(program), target_(target), touches_(program.buffers.size()) {
    for (uint32_t i = 0; i < program.instrs.size(); ++i)
      for (const auto* views : {&program.instrs[i].inputs, &program.instrs[i].outputs})
        for (const View& view : *views)
          if (touches_[view.buffer].empty() || touches_[view.buffer].back() != i)
            touches_[view.buffer].push_back(i);
  }

  /// Whether the copy went. Where a product could do either, it reads: a scattered result is dearer
  /// than an operand.
  bool remove(uint32_t i) { return isMovable(i) && (readThere(i) || writeThere(i)); }

private:
  bool isPlain(uint32_t i) const {
    return program_.instrs[i].loop == kNone && program_.instrs[i].group == kNone;
  }

  /// A copy of row-major elements from one buffer to another.
  bool isMovable(uint32_t i) const {
    const Instr& copy = program_.instrs[i];
    if (copy.kind != CDL_KIND_COPY || !isPlain(i) || copy.inputs.size() != 1) return false;
    const View &from = copy.inputs[0], &to = copy.outputs[0];
    return from.elem == to.elem && !isPacked(from.elem) && from.buffer != to.buffer &&
           from.layout.isRowMajor() && to.layout.isRowMajor() && from.count() > 0 &&
           !std::ranges::count(to.strides, 0);
  }
  /// The view holds every element of a TEMP buffer without a border, once.
  bool isWhole(const View& view) const {
    const Buffer& buffer = program_.buffers[view.buffer];
    return buffer.role == Role::temp && !buffer.halo && !std::ranges::count(view.strides, 0) &&
           view.offset == 0 &&
           elemBytes(view.elem, static_cast<uint64_t>(view.count())) == buffer.bytes;
  }

  capabilities::Support supportOf(const Instr& instr) const {
    return target_.query(schedule::described(program_, instr)).support;
  }
  /// The target does `changed` as it does `instr`.
  bool isTaken(const Instr& instr, const Instr& changed) const {
    const capabilities::Support before = supportOf(instr);
    return before != capabilities::Support::none && supportOf(changed) == before;
  }

  /// Whether others touch bytes of a view: `isHarmless` of (instruction, whether it writes).
  template <typename Harmless>
  bool onlyHarmless(uint32_t copy, const View& view, const Harmless& isHarmless) const {
    const Access bytes = accessOf(program_, program_.instrs[copy], view, true);
    for (const uint32_t i : touches_[view.buffer])
      for (const Access& access : accessesOf(program_, program_.instrs[i]))
        if (i != copy && access.overlaps(bytes) && !isHarmless(i, access.write)) return false;
    return true;
  }

  void drop(uint32_t copy, uint32_t buffer) {
    program_.instrs[copy].inputs.clear(), program_.instrs[copy].outputs.clear();
    for (std::vector<uint32_t>& users : touches_) std::erase(users, copy);
    touches_[buffer].clear();
    program_.buffers[buffer].bytes = 0; // nothing touches it any more
  }
  void touch(uint32_t buffer, uint32_t instr) {
    std::vector<uint32_t>& users = touches_[buffer];
    users.insert(std::ranges::lower_bound(users, instr), instr);
    users.erase(std::unique(users.begin(), users.end()), users.end());
  }

  /// The writer of the copy's source writes its target instead.
  bool writeThere(uint32_t index) {
    const Instr& copy = program_.instrs[index];
    const View from = copy.inputs[0], to = copy.outputs[0];
    if (!isWhole(from) || touches_[from.buffer].size() != 2 || touches_[from.buffer][0] >= index)
      return false;
    const Buffer& target = program_.buffers[to.buffer];
    if (target.role != Role::temp && target.role != Role::output) return false;
    if (target.space != program_.buffers[from.buffer].space) return false;
    const uint32_t writer = touches_[from.buffer][0];
    const Instr& instr = program_.instrs[writer];
    if (!isPlain(writer) || instr.inout || instr.outputs.size() != 1 ||
        instr.outputs[0].buffer != from.buffer || instr.outputs[0].elem != from.elem ||
        !isWhole(instr.outputs[0]))
      return false;
    // Nothing but the copy writes there, and nobody reads it earlier.
    if (!onlyHarmless(index, to, [&](uint32_t i, bool writes) { return !writes && i > index; }))
      return false;
    const CopyWalk walk = walkOf(copy);
    const auto changed = writingInto(instr, walk, to.buffer);
    if (!changed || !isTaken(instr, *changed)) return false;
    program_.instrs[writer] = *changed;
    std::vector<Origin>& origins = program_.instrs[writer].provenance;
    for (const Origin& origin : copy.provenance)
      if (!std::ranges::count(origins, origin.node, &Origin::node)) origins.push_back(origin);
    touch(to.buffer, writer);
    drop(index, from.buffer);
    return true;
  }

  std::optional<Instr> writingInto(const Instr& instr, const CopyWalk& walk,
                                   uint32_t buffer) const {
    if (isElementwise(instr.kind)) return rewalked(instr, walk, buffer);
    if (instr.kind == CDL_KIND_MATMUL) return withResult(instr, walk, buffer);
    return std::nullopt;
  }

  std::optional<Instr> withResult(const Instr& instr, const CopyWalk& walk, uint32_t buffer) const {
    const auto view = through(instr.outputs[0], walk, walk.from, walk.to, buffer);
    if (!view) return std::nullopt;
    Instr changed = instr;
    changed.outputs[0] = *view;
    return changed;
  }
  /// All views over the dims of the copy.
  std::optional<Instr> rewalked(const Instr& instr, const CopyWalk& walk, uint32_t buffer) const {
    if (walk.dims.size() > CDL_MAX_RANK || walk.dims.empty()) return std::nullopt;
    Instr changed = instr;
    View& y = changed.outputs[0];
    for (View& operand : changed.inputs) {
      // Packed elements are walked as they lie.
      if (!operand.layout.isRowMajor() || operand.dims != y.dims || isPacked(operand.elem))
        return std::nullopt;
      auto strides = over(operand, instr.outputs[0], walk, walk.from);
      if (!strides) return std::nullopt;
      operand.strides = std::move(*strides);
    }
    if (!y.layout.isRowMajor()) return std::nullopt;
    for (View& operand : changed.inputs) operand.dims = walk.dims;
    y.buffer = buffer;
    y.dims = walk.dims;
    y.strides = walk.to.strides;
    y.offset = walk.to.offset;
    return changed;
  }

  /// Every reader of the copy's target reads its source instead.
  bool readThere(uint32_t index) {
    const Instr& copy = program_.instrs[index];
    const View from = copy.inputs[0], to = copy.outputs[0];
    if (!isWhole(to) || touches_[to.buffer].size() < 2 || touches_[to.buffer][0] != index)
      return false;
    const Buffer& source = program_.buffers[from.buffer];
    const uint32_t last = touches_[to.buffer].back();
    const bool livesOn = source.role == Role::temp && touches_[from.buffer].back() >= last;
    if (source.role != Role::temp && source.role != Role::input && source.role != Role::constant)
      return false;
    if (source.role == Role::temp && !livesOn && source.bytes > program_.buffers[to.buffer].bytes)
      return false;
    if (!onlyHarmless(index, from, [&](uint32_t i, bool writes) { return !writes || i < index; }))
      return false;
    const CopyWalk walk = walkOf(copy);
    std::vector<std::pair<uint32_t, Instr>> changes;
    for (const uint32_t i : touches_[to.buffer]) {
      if (i == index) continue;
      const Instr& instr = program_.instrs[i];
      const bool walks =
          isElementwise(instr.kind) || instr.kind == CDL_KIND_MATMUL || instr.kind == CDL_KIND_COPY;
      if (!isPlain(i) || !walks || instr.outputs[0].buffer == to.buffer) return false;
      Instr changed = instr;
      for (View& view : changed.inputs) {
        if (view.buffer != to.buffer) continue;
        auto there = view.elem == to.elem && view.layout.isRowMajor()
                         ? through(view, walk, walk.to, walk.from, from.buffer)
                         : std::nullopt;
        if (!there) return false;
        view = *there;
      }
      if (!isTaken(instr, changed)) return false;
      changes.emplace_back(i, std::move(changed));
    }
    for (auto& [i, changed] : changes) {
      for (const Origin& origin : copy.provenance)
        if (!std::ranges::count(changed.provenance, origin.node, &Origin::node))
          changed.provenance.push_back(origin);
      program_.instrs[i] = std::move(changed);
      touch(from.buffer, i);
    }
    drop(index, to.buffer);
    return true;
  }

  Program& program_;
  const capabilities::Target& target_;
  std::vector<std::vector<uint32_t>> touches_; ///< per buffer, ascending
};

} // namespace

int joinMovement(Program& program, const capabilities::Target& target) {
  const auto count = static_cast<uint32_t>(program.instrs.size());
  const auto peaksOf = [](const Program& of) {
    return schedule::peakBytes(of, schedule::sharesOf(of, true));
  };
  std::vector<uint64_t> peaks = peaksOf(program);
  // The copies [first, first + some) go, where no peak grows by that.
  const auto attempt = [&](uint32_t first, uint32_t some) {
    Program changed = program;
    Mover mover(changed, target);
    int gone = 0;
    for (uint32_t i = first; i < first + some; ++i) gone += mover.remove(i);
    if (!gone) return 0;
    std::vector<uint64_t> after = peaksOf(changed);
    if (!std::ranges::equal(after, peaks, std::ranges::less_equal{})) return -1;
    program = std::move(changed);
    peaks = std::move(after);
    return gone;
  };
  int gone = attempt(0, count);
  if (gone < 0) { // not all of them: one by one
    gone = 0;
    for (uint32_t i = 0; i < count; ++i)
      if (program.instrs[i].kind == CDL_KIND_COPY) gone += std::max(0, attempt(i, 1));
  }
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < count; ++i)
    if (!program.instrs[i].outputs.empty()) order.push_back(i);
  if (gone) schedule::reorder(program, order);
  return gone;
}

} // namespace candela::program::passes::join_movement
