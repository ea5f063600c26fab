// Judges a placed Program by playing its accesses in order. Shares no code with what placed it.
#include <algorithm>
#include <map>

#include "core/compiler/program/passes/schedule/schedule.h"

namespace candela::program::passes::schedule {

namespace {

struct Range {
  uint64_t begin = 0, end = 0;
};

/// Part of what a buffer wrote, and who wrote over it since.
struct Loss {
  Range range;
  uint32_t by = 0, instr = 0;
};

/// The bytes of one arena, which buffer wrote each of them last, and what others lost by that.
class Arena {
public:
  void write(const Range& range, uint32_t buffer, uint32_t instr) {
    cut(range.begin);
    cut(range.end);
    const auto first = owned_.lower_bound(range.begin), last = owned_.lower_bound(range.end);
    for (auto it = first; it != last; ++it)
      if (it->second.buffer != buffer)
        lost_[it->second.buffer].push_back({{it->first, it->second.end}, buffer, instr});
    owned_.erase(first, last);
    owned_[range.begin] = {range.end, buffer};
    regain(lost_[buffer], range);
  }

  /// Something within the range that the buffer wrote and does not have any more, or null.
  const Loss* lossOf(uint32_t buffer, const Range& range) const {
    const auto found = lost_.find(buffer);
    if (found == lost_.end()) return nullptr;
    const auto loss = std::ranges::find_if(found->second, [&](const Loss& l) {
      return l.range.begin < range.end && range.begin < l.range.end;
    });
    return loss == found->second.end() ? nullptr : &*loss;
  }

private:
  struct Owned {
    uint64_t end = 0;
    uint32_t buffer = 0;
  };

  /// Makes `at` a border between two entries.
  void cut(uint64_t at) {
    auto it = owned_.lower_bound(at);
    if (it == owned_.begin()) return;
    --it;
    if (it->second.end <= at) return;
    const Owned upper = it->second;
    it->second.end = at;
    owned_[at] = upper;
  }

  /// What is written again is lost no more.
  static void regain(std::vector<Loss>& losses, const Range& range) {
    std::vector<Loss> left;
    for (const Loss& loss : losses) {
      if (loss.range.begin < std::min(range.begin, loss.range.end))
        left.push_back(
            {{loss.range.begin, std::min(range.begin, loss.range.end)}, loss.by, loss.instr});
      if (std::max(range.end, loss.range.begin) < loss.range.end)
        left.push_back(
            {{std::max(range.end, loss.range.begin), loss.range.end}, loss.by, loss.instr});
    }
    losses = std::move(left);
  }

  std::map<uint64_t, Owned> owned_; ///< by first byte
  std::map<uint32_t, std::vector<Loss>> lost_;
};

class Simulation {
public:
  explicit Simulation(const Program& program) : program_(program), arenas_(program.spaces.size()) {}

  Status run() { return runBlock(0, static_cast<uint32_t>(program_.instrs.size()), kNone); }

private:
  /// Loops run twice, so that what one iteration leaves meets the next one.
  Status runBlock(uint32_t begin, uint32_t end, uint32_t parent) {
    for (uint32_t i = begin; i < end;) {
      const Loop* loop = nullptr;
      uint32_t index = kNone;
      for (uint32_t l = 0; l < program_.loops.size() && !loop; ++l) {
        if (program_.loops[l].parent != parent || program_.loops[l].first != i) continue;
        loop = &program_.loops[l];
        index = l;
      }
      if (!loop) {
        CDL_TRY(step(i++));
        continue;
      }
      for (int round = 0; round < 2; ++round)
        CDL_TRY(runBlock(loop->first, loop->first + loop->count, index));
      i = loop->first + loop->count;
    }
    return Status::ok();
  }

  Status step(uint32_t index) {
    const Instr& instr = program_.instrs[index];
    for (const View& view : instr.inputs) CDL_TRY(read(index, view));
    for (const View& view : instr.outputs) {
      if (instr.inout) CDL_TRY(read(index, view));
      CDL_TRY(checkSharing(index, view));
    }
    for (const View& view : instr.outputs)
      if (isTemp(view)) arenas_[spaceOf(view)].write(rangeOf(instr, view), view.buffer, index);
    return Status::ok();
  }

  Status read(uint32_t index, const View& view) {
    if (!isTemp(view)) return Status::ok();
    const Buffer& buffer = program_.buffers[view.buffer];
    if (buffer.offset == CDL_UNPLACED) return badModel("buffer '{}' has no place", buffer.name);
    // A border belongs to what is read.
    const Range range = buffer.halo ? Range{buffer.offset, buffer.offset + buffer.bytes}
                                    : rangeOf(program_.instrs[index], view);
    const Loss* loss = arenas_[spaceOf(view)].lossOf(view.buffer, range);
    if (!loss) return Status::ok();
    return badModel("buffers '{}' and '{}' overlap while both are live: instruction {} reads what "
                    "instruction {} overwrote",
                    buffer.name, program_.buffers[loss->by].name, index + 1, loss->instr + 1);
  }

  /// What an instruction writes may lie on what it reads only element by element.
  Status checkSharing(uint32_t index, const View& out) {
    if (!isTemp(out)) return Status::ok();
    const Instr& instr = program_.instrs[index];
    const Buffer& result = program_.buffers[out.buffer];
    if (result.offset == CDL_UNPLACED) return badModel("buffer '{}' has no place", result.name);
    const Range written = rangeOf(instr, out);
    const auto meets = [&](const View& view) {
      if (!isTemp(view) || view.buffer == out.buffer || spaceOf(view) != spaceOf(out)) return false;
      const Range range = rangeOf(instr, view);
      return range.begin < written.end && written.begin < range.end;
    };
    for (size_t i = 0; i < instr.inputs.size(); ++i) {
      const View& in = instr.inputs[i];
      if (!meets(in)) continue;
      const Range range = rangeOf(instr, in);
      const bool same = range.begin == written.begin && range.end == written.end &&
                        in.dims == out.dims && in.strides == out.strides &&
                        in.layout == out.layout && instr.loop == kNone;
      const bool lookedUp = instr.kind == CDL_KIND_TABLE && i == 1; // anywhere, in any order
      if (!same || lookedUp || !isElementwise(instr.kind))
        return badModel(
            "buffers '{}' and '{}' overlap: instruction {} reads one while it writes the other",
            program_.buffers[in.buffer].name, result.name, index + 1);
    }
    for (const View& other : instr.outputs)
      if (meets(other))
        return badModel("buffers '{}' and '{}' overlap: instruction {} writes both",
                        program_.buffers[other.buffer].name, result.name, index + 1);
    return Status::ok();
  }

  static bool isElementwise(uint16_t kind) {
    return kind == CDL_KIND_CONVERT || kind == CDL_KIND_BINARY || kind == CDL_KIND_SELECT ||
           kind == CDL_KIND_UNARY || kind == CDL_KIND_RESCALE || kind == CDL_KIND_TABLE ||
           kind == CDL_KIND_ELEMENTWISE;
  }

  bool isTemp(const View& view) const {
    return program_.buffers[view.buffer].role == Role::temp && view.count() > 0;
  }
  uint32_t spaceOf(const View& view) const { return program_.buffers[view.buffer].space; }

  /// From the first byte of the lowest to the last byte of the highest element, in the arena.
  Range rangeOf(const Instr& instr, const View& view) const {
    int64_t low = view.offset, high = view.offset;
    std::vector<std::pair<int64_t, int64_t>> axes; // extent, stride
    for (size_t d = 0; d < view.dims.size(); ++d) axes.emplace_back(view.dims[d], view.strides[d]);
    if (instr.loop != kNone) {
      const Loop& inner = program_.loops[instr.loop];
      const bool nested = inner.parent != kNone;
      axes.emplace_back(inner.trip, view.ivStrides[nested ? 1 : 0]);
      if (nested) axes.emplace_back(program_.loops[inner.parent].trip, view.ivStrides[0]);
    }
    for (const auto& [extent, stride] : axes) (stride < 0 ? low : high) += (extent - 1) * stride;
    const uint64_t base = program_.buffers[view.buffer].offset, bits = elemBits(view.elem);
    return {base + low * bits / 8, base + ((high + 1) * bits + 7) / 8};
  }

  const Program& program_;
  std::vector<Arena> arenas_;
};

} // namespace

Status validatePlacement(const Program& program) { return Simulation(program).run(); }

} // namespace candela::program::passes::schedule
