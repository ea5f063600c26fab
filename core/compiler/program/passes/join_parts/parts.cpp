#include "core/compiler/program/passes/join_parts/parts.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/compiler/program/dependences.h"
#include "core/compiler/program/passes/schedule/lifetimes.h"
#include "core/compiler/program/passes/schedule/simplify.h"

namespace candela::program::passes::join_parts {

namespace {

/// All of a row-major buffer without a border.
bool isWhole(const Program& program, const View& view) {
  const Buffer& buffer = program.buffers[view.buffer];
  return view.isDense() && view.offset == 0 && !buffer.halo &&
         elemBytes(view.elem, static_cast<uint64_t>(view.count())) == buffer.bytes;
}

/// Elements of a border that are looked at one by one.
constexpr int64_t kMostCompared = 1 << 20;

/// Whether a few elements and a view of the same buffer have one in common. True also where that is
/// not easily seen.
bool mayMeet(const View& few, const View& view) {
  std::vector<size_t> outerFirst(view.dims.size());
  std::iota(outerFirst.begin(), outerFirst.end(), size_t{0});
  std::ranges::stable_sort(outerFirst, std::ranges::greater{},
                           [&](size_t d) { return view.strides[d]; });
  int64_t span = 1; // of the inner dims, in elements: an outer one must step over it
  for (auto d = outerFirst.rbegin(); d != outerFirst.rend();
       span += (view.dims[*d] - 1) * view.strides[*d], ++d)
    if (view.dims[*d] > 1 && view.strides[*d] < span) return true;
  if (few.count() > kMostCompared || few.elem != view.elem) return true;
  std::vector<int64_t> index(few.dims.size());
  for (int64_t i = 0, count = few.count(); i < count; ++i) {
    int64_t rest = few.offset - view.offset;
    for (size_t d = 0; d < index.size(); ++d) rest += index[d] * few.strides[d];
    for (const size_t d : outerFirst)
      if (const int64_t stride = view.strides[d]; view.dims[d] > 1)
        rest -= std::clamp<int64_t>(rest / stride, 0, view.dims[d] - 1) * stride;
    if (rest == 0) return true;
    for (size_t d = index.size(); d-- > 0 && ++index[d] == few.dims[d];) index[d] = 0;
  }
  return false;
}

/// One attempt: a Program in which copies vanish one by one. Removed ones have no views until
/// finish().
class Joiner {
public:
  explicit Joiner(Program& program) : program_(program), touches_(program.buffers.size()) {
    for (uint32_t i = 0; i < program.instrs.size(); ++i)
      for (const auto* views : {&program.instrs[i].inputs, &program.instrs[i].outputs})
        for (const View& view : *views)
          if (touches_[view.buffer].empty() || touches_[view.buffer].back() != i)
            touches_[view.buffer].push_back(i);
  }

  /// The buffer that can lie within the other one of the copy; kNone where the meaning would
  /// change.
  uint32_t partOf(uint32_t index) const {
    const Instr& copy = program_.instrs[index];
    if (copy.kind != CDL_KIND_COPY || copy.loop != kNone || copy.group != kNone ||
        copy.inputs.empty())
      return kNone;
    const View &from = copy.inputs[0], &to = copy.outputs[0];
    if (from.elem != to.elem || isPacked(from.elem) || from.buffer == to.buffer) return kNone;
    if (isFramed(index)) return from.buffer;
    if (!from.isDense() || !to.isDense()) return kNone;
    if (isWhole(program_, from) && isPart(from, to) && isWrittenThere(index)) return from.buffer;
    if (isWhole(program_, to) && isPart(to, from) && isReadThere(index)) return to.buffer;
    return kNone;
  }

  /// partOf(index) was `part`.
  void join(uint32_t index, uint32_t part) {
    Instr& copy = program_.instrs[index];
    View place = copy.inputs[0].buffer == part ? copy.outputs[0] : copy.inputs[0];
    if (program_.buffers[part].halo) {
      place = frameOf(copy);
      for (const uint32_t i : touches_[part])
        if (Instr& fill = program_.instrs[i]; fill.kind == CDL_KIND_FILL) fill.outputs.clear();
    }
    Buffer& whole = program_.buffers[place.buffer];
    if (whole.role == Role::temp)
      whole.alignment = std::max(whole.alignment, program_.buffers[part].alignment);
    copy.inputs.clear();
    copy.outputs.clear();
    std::vector<uint32_t>& users = touches_[place.buffer];
    std::erase(users, index);
    for (const uint32_t i : touches_[part]) {
      if (i == index) continue;
      for (auto* views : {&program_.instrs[i].inputs, &program_.instrs[i].outputs})
        for (View& view : *views)
          if (view.buffer == part) view = schedule::moved(view, place);
      users.push_back(i);
    }
    std::ranges::sort(users);
    users.erase(std::unique(users.begin(), users.end()), users.end());
    touches_[part].clear();
    program_.buffers[part].bytes = 0; // nothing touches it any more
  }

private:
  /// Whether `part`, a whole TEMP buffer, can lie where `place` is in another one.
  bool isPart(const View& part, const View& place) const {
    const Buffer &inner = program_.buffers[part.buffer], &outer = program_.buffers[place.buffer];
    if (inner.role != Role::temp || outer.role == Role::constant || inner.space != outer.space)
      return false;
    if (!inner.halo != !outer.halo) return false;
    if (outer.role != Role::temp && outer.alignment < inner.alignment) return false;
    if (elemBytes(place.elem, static_cast<uint64_t>(place.offset)) % inner.alignment != 0)
      return false;
    // Views move by elements of one size, and where nothing runs twice.
    const auto isMovable = [&](uint32_t i, uint32_t buffer) {
      const Instr& instr = program_.instrs[i];
      if (instr.loop != kNone || instr.group != kNone) return false;
      for (const auto* views : {&instr.inputs, &instr.outputs})
        for (const View& view : *views)
          if (view.buffer == buffer && elemBits(view.elem) != elemBits(place.elem)) return false;
      return true;
    };
    return std::ranges::all_of(touches_[part.buffer],
                               [&](uint32_t i) { return isMovable(i, part.buffer); }) &&
           std::ranges::all_of(touches_[place.buffer],
                               [&](uint32_t i) { return program_.instrs[i].loop == kNone; });
  }

  /// Where the whole source of a copy lies in the target, when both step alike.
  View frameOf(const Instr& copy) const {
    const View &from = copy.inputs[0], &to = copy.outputs[0];
    const Buffer& inner = program_.buffers[from.buffer];
    View frame =
        denseView(to.buffer, to.elem, {static_cast<int64_t>(inner.bytes * 8) / elemBits(to.elem)});
    frame.offset = to.offset - from.offset;
    return frame;
  }

  /// The copy takes all that is inside of a border into a part of a buffer with the same border,
  /// which is filled there too; nobody else reads the source.
  bool isFramed(uint32_t index) const {
    const Instr& copy = program_.instrs[index];
    const View &from = copy.inputs[0], &to = copy.outputs[0];
    const Buffer &inner = program_.buffers[from.buffer], &outer = program_.buffers[to.buffer];
    if (!inner.halo || !outer.halo || inner.halo->fill != outer.halo->fill || from.dims != to.dims)
      return false;
    if (from.strides != to.strides || to.offset < from.offset || outer.role != Role::temp)
      return false;
    const View frame = frameOf(copy);
    if (elemBytes(frame.elem, static_cast<uint64_t>(frame.offset)) + inner.bytes > outer.bytes)
      return false;
    const auto isFill = [&](uint32_t i, const View& content) {
      const Instr& instr = program_.instrs[i];
      return instr.kind == CDL_KIND_FILL &&
             static_cast<uint64_t>(instr.attrs[0].values[0]) == outer.halo->fill &&
             !mayMeet(instr.outputs[0], content);
    };
    bool is = isPart(from, frame);
    for (const uint32_t i : touches_[from.buffer]) {
      if (i == index) continue;
      const Instr& instr = program_.instrs[i];
      is &= i < index && std::ranges::none_of(
                             instr.inputs, [&](const View& v) { return v.buffer == from.buffer; });
      is &= instr.kind != CDL_KIND_FILL || isFill(i, from);
    }
    eachOther(index, frame, [&](uint32_t i, bool writes) {
      is &= writes ? i < index && isFill(i, to) : i > index;
    });
    return is;
  }

  /// Who but the copy touches bytes of a view: visit(instruction, whether it writes).
  template <typename Visit>
  void eachOther(uint32_t index, const View& view, const Visit& visit) const {
    const Access bytes = accessOf(program_, program_.instrs[index], view, true);
    for (const uint32_t i : touches_[view.buffer])
      for (const Access& access : accessesOf(program_, program_.instrs[i]))
        if (i != index && access.overlaps(bytes)) visit(i, access.write);
  }

  /// The source is written before the copy alone, where it goes all else happens behind it, and
  /// nobody wants the source when that is written again.
  bool isWrittenThere(uint32_t index) const {
    const Instr& copy = program_.instrs[index];
    bool is = program_.buffers[copy.outputs[0].buffer].role == Role::temp ||
              program_.buffers[copy.outputs[0].buffer].role == Role::output;
    bool isReadLate = false, isRewritten = false;
    eachOther(index, copy.inputs[0], [&](uint32_t i, bool writes) {
      is &= !writes || i < index;
      isReadLate |= !writes && i > index;
    });
    eachOther(index, copy.outputs[0], [&](uint32_t i, bool writes) {
      is &= i > index;
      isRewritten |= writes;
    });
    return is && !(isReadLate && isRewritten);
  }

  /// The copy alone writes its target, and where that comes from nobody writes afterwards.
  bool isReadThere(uint32_t index) const {
    const Instr& copy = program_.instrs[index];
    bool is = program_.buffers[copy.inputs[0].buffer].role == Role::temp ||
              program_.buffers[copy.inputs[0].buffer].role == Role::input;
    eachOther(index, copy.outputs[0], [&](uint32_t i, bool writes) { is &= !writes && i > index; });
    eachOther(index, copy.inputs[0], [&](uint32_t i, bool writes) { is &= !writes || i < index; });
    return is;
  }

  Program& program_;
  std::vector<std::vector<uint32_t>> touches_; ///< per buffer, ascending
};

/// Copies between the same buffers and others, by the larger one: they join all or none.
std::vector<std::vector<uint32_t>> candidatesOf(Program& program) {
  const Joiner joiner(program);
  std::map<uint32_t, std::vector<uint32_t>> byWhole;
  for (uint32_t i = 0; i < program.instrs.size(); ++i) {
    const uint32_t part = joiner.partOf(i);
    if (part == kNone) continue;
    const Instr& copy = program.instrs[i];
    byWhole[copy.inputs[0].buffer == part ? copy.outputs[0].buffer : copy.inputs[0].buffer]
        .push_back(i);
  }
  std::vector<std::vector<uint32_t>> candidates;
  for (auto& [whole, copies] : byWhole) candidates.push_back(std::move(copies));
  std::ranges::sort(candidates);
  return candidates;
}

bool isNoWorse(const std::vector<uint64_t>& peaks, const std::vector<uint64_t>& than) {
  return std::ranges::equal(peaks, than, std::ranges::less_equal{});
}

} // namespace

int joinParts(Program& program) {
  narrowFills(program);
  const std::vector<std::vector<uint32_t>> candidates = candidatesOf(program);
  if (candidates.empty()) return 0;
  int joined = 0;
  std::vector<uint64_t> peaks = schedule::peakBytes(program, schedule::sharesOf(program, true));
  for (const std::vector<uint32_t>& copies : candidates) {
    Program attempt = program;
    Joiner joiner(attempt);
    int count = 0;
    for (const uint32_t copy : copies)
      if (const uint32_t part = joiner.partOf(copy); part != kNone) {
        joiner.join(copy, part);
        ++count;
      }
    std::vector<uint64_t> after = schedule::peakBytes(attempt, schedule::sharesOf(attempt, true));
    if (count == 0 || !isNoWorse(after, peaks)) continue;
    program = std::move(attempt);
    peaks = std::move(after);
    joined += count;
  }
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < program.instrs.size(); ++i)
    if (!program.instrs[i].outputs.empty() ||
        (program.instrs[i].kind != CDL_KIND_COPY && program.instrs[i].kind != CDL_KIND_FILL))
      order.push_back(i);
  if (joined) schedule::reorder(program, order);
  return joined;
}

} // namespace candela::program::passes::join_parts
