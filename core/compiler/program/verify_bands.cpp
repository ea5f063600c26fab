// Whether a group may run band by band, judged by the bytes that its pieces of work touch.
#include <algorithm>

#include "core/compiler/program/bands.h"
#include "core/compiler/program/dependences.h"
#include "core/compiler/program/internal.h"

namespace candela::program {

namespace {

constexpr size_t kMostSpans = 1 << 16; // of one access; more are joined

/// Bytes first .. last - 1 of a region.
struct Span {
  int64_t first = 0, last = 0;
};

/// What one member touches by one view while it computes some rows.
struct Touch {
  uint64_t region = 0;
  std::vector<Span> spans; // ascending
};

struct Extent {
  int64_t count = 1, stride = 0;
};

/// The lowest and the highest element of some extents from 0.
void widen(Span& reach, const Extent& extent) {
  const int64_t far = (extent.count - 1) * extent.stride;
  (far < 0 ? reach.first : reach.last) += far;
}

/// How the elements of one row of a view lie.
struct Spread {
  Span reach;                ///< elements that are closer to each other than rows: one span
  std::vector<Extent> apart; ///< what lies farther apart than rows: a span for each element
};

/// `halo`: the border that is read with the content; null: none.
Spread spreadOf(const View& view, const RowAxis& axis, const Halo* halo) {
  const int64_t stride = view.strides[axis.dim], step = stride * axis.inner;
  Spread spread;
  const auto add = [&](const Extent& extent) {
    if (extent.count > 1 && std::abs(extent.stride) >= std::abs(step))
      spread.apart.push_back(extent);
    else
      widen(spread.reach, extent);
  };
  add({axis.inner, stride});
  add({view.dims[axis.dim] / (axis.inner * axis.rows), step * axis.rows});
  for (uint32_t d = 0; d < view.dims.size(); ++d) {
    if (d == axis.dim) continue;
    add({view.dims[d], view.strides[d]});
    if (!halo || !(halo->lo[d] || halo->hi[d])) continue;
    widen(spread.reach, {int64_t{halo->hi[d]} + 1, view.strides[d]});
    widen(spread.reach, {int64_t{halo->lo[d]} + 1, -view.strides[d]});
  }
  return spread;
}

/// Where the spans of an access begin, in ascending order, the first of them at `start`. Extents
/// that would make more than kMostSpans are taken into each span.
std::vector<int64_t> startsOf(int64_t start, Spread& spread) {
  std::vector<int64_t> starts{start};
  for (const Extent& extent : spread.apart) {
    if (starts.size() * static_cast<uint64_t>(extent.count) > kMostSpans) {
      widen(spread.reach, extent);
      continue;
    }
    const size_t known = starts.size();
    for (int64_t n = 1; n < extent.count; ++n)
      for (size_t s = 0; s < known; ++s) starts.push_back(starts[s] + n * extent.stride);
  }
  std::ranges::sort(starts);
  return starts;
}

class Judge {
public:
  Judge(const Program& program, const Group& group, const std::vector<BandMember>& members)
      : program_(program), group_(group), members_(members) {}

  /// Member j does band k before member i < j does those behind it.
  Status run() const {
    for (size_t i = 0; i < members_.size(); ++i)
      for (size_t j = i + 1; j < members_.size(); ++j)
        for (uint32_t k = 0; k + 1 < group_.bands; ++k) CDL_TRY(compare(i, j, k));
    return Status::ok();
  }

private:
  Status compare(size_t i, size_t j, uint32_t band) const {
    const Rows later = members_[i].rowsBehind(band), now = members_[j].rowsOf(band);
    if (later.first >= later.last || now.first >= now.last) return Status::ok();
    const Instr &a = instrOf(i), &b = instrOf(j);
    for (size_t v = 0; v <= a.inputs.size(); ++v)
      for (size_t w = 0; w <= b.inputs.size(); ++w) {
        const bool aWrites = v == a.inputs.size(), bWrites = w == b.inputs.size();
        if (!aWrites && !bWrites) continue;
        CDL_TRY(meet(i, v, later, j, w, now, band));
      }
    return Status::ok();
  }

  Status meet(size_t i, size_t v, const Rows& later, size_t j, size_t w, const Rows& now,
              uint32_t band) const {
    const View &a = viewOf(i, v), &b = viewOf(j, w);
    if (regionOf(a) != regionOf(b)) return Status::ok();
    const Touch mine = touch(j, w, now), other = touch(i, v, later);
    size_t next = 0;
    for (const Span& span : mine.spans) {
      while (next < other.spans.size() && other.spans[next].last <= span.first) ++next;
      if (next == other.spans.size()) break;
      if (other.spans[next].first >= span.last) continue;
      const bool isWrite = w == instrOf(j).inputs.size();
      const int64_t first = std::max(span.first, other.spans[next].first);
      const int64_t last = std::min(span.last, other.spans[next].last);
      return badModel("{}: in band {} of {} it {} bytes {} to {} of %{}, which {} only then {} for "
                      "rows {} to {} of %{}",
                      program_.instrName(members_[j].instr), band + 1, group_.bands,
                      isWrite ? "writes" : "reads", first, last - 1,
                      program_.buffers[b.buffer].name, program_.instrName(members_[i].instr),
                      v == instrOf(i).inputs.size() ? "writes" : "reads", later.first,
                      later.last - 1,
                      program_.buffers[viewOf(i, instrOf(i).inputs.size()).buffer].name);
    }
    return Status::ok();
  }

  Touch touch(size_t m, size_t v, Rows rows) const {
    const BandMember& member = members_[m];
    const Instr& instr = instrOf(m);
    const bool isWrite = v == instr.inputs.size();
    const View& view = viewOf(m, v);
    const RowAxis& axis = isWrite ? member.output : member.inputs[v];
    const Buffer& buffer = program_.buffers[view.buffer];
    const Access whole = accessOf(program_, instr, view, isWrite);
    Touch touch{whole.region, {}};
    const Span all{static_cast<int64_t>(whole.begin), static_cast<int64_t>(whole.end)};
    if (all.first >= all.last) return touch;
    if (axis.dim == kNone || std::ranges::count(view.ivStrides, 0) != 2) {
      touch.spans.push_back(all);
      return touch;
    }
    const bool readsBorder = !isWrite && v == 0 && member.isWindow && buffer.halo;
    if (readsBorder && buffer.halo->lo.size() != view.dims.size()) {
      touch.spans.push_back(all);
      return touch;
    }
    const Halo* halo = readsBorder ? &*buffer.halo : nullptr;
    if (!isWrite) rows = member.rowsRead(v, rows);
    rows.first = std::max<int64_t>(rows.first, halo ? -int64_t{halo->lo[axis.dim]} : 0);
    rows.last = std::min<int64_t>(rows.last, axis.rows + (halo ? int64_t{halo->hi[axis.dim]} : 0));
    if (rows.first >= rows.last) return touch;

    Spread spread = spreadOf(view, axis, halo);
    const int64_t step = view.strides[axis.dim] * axis.inner;
    widen(spread.reach, {rows.last - rows.first, step});
    const std::vector<int64_t> starts = startsOf(view.offset + rows.first * step, spread);
    const int64_t bits = elemBits(view.elem);
    const int64_t base = buffer.role == Role::temp && buffer.offset != CDL_UNPLACED
                             ? static_cast<int64_t>(buffer.offset)
                             : 0;
    for (const int64_t start : starts)
      touch.spans.push_back({base + (start + spread.reach.first) * bits / 8,
                             base + ((start + spread.reach.last + 1) * bits + 7) / 8});
    return touch;
  }

  uint64_t regionOf(const View& view) const {
    return accessOf(program_, program_.instrs[group_.first], view, true).region;
  }
  const Instr& instrOf(size_t m) const { return program_.instrs[members_[m].instr]; }
  /// Input v, or behind the inputs the result.
  const View& viewOf(size_t m, size_t v) const {
    const Instr& instr = instrOf(m);
    return v < instr.inputs.size() ? instr.inputs[v] : instr.outputs[0];
  }

  const Program& program_;
  const Group& group_;
  const std::vector<BandMember>& members_;
};

/// Who waits for a member in bands waits for its part of the same band: only bytes can need no more
/// than that.
Status checkWaits(const Program& program, const Group& group) {
  const auto dependences = directDependences(program);
  for (uint32_t i = group.first; i < group.first + group.count; ++i) {
    std::vector<uint32_t> open{i};
    std::vector<bool> follows(group.count, false);
    while (!open.empty()) {
      const uint32_t at = open.back();
      open.pop_back();
      for (const uint32_t before : dependences[at])
        if (before >= group.first && !follows[before - group.first]) {
          follows[before - group.first] = true;
          open.push_back(before);
        }
    }
    for (const uint32_t wait : program.instrs[i].waits)
      if (wait >= group.first && !follows[wait - group.first])
        return badModel("{}: it waits for {} of its own group, and for no bytes of it",
                        program.instrName(i), program.instrName(wait));
  }
  return Status::ok();
}

} // namespace

Status verifyBands(const Program& program, const Group& group) {
  if (group.bands == 1 || group.count == 0) return Status::ok();
  for (uint32_t i = group.first; i < group.first + group.count; ++i) {
    const Instr& instr = program.instrs[i];
    if (instr.loop != program.instrs[group.first].loop)
      return badModel("{}: a loop stands inside of a group of {} bands", program.instrName(i),
                      group.bands);
    for (const View& out : instr.outputs)
      if (const Role role = program.buffers[out.buffer].role;
          role == Role::state || role == Role::inout)
        return badModel("{}: it writes %{}, which outlives the run, in {} bands",
                        program.instrName(i), program.buffers[out.buffer].name, group.bands);
  }
  const std::vector<uint32_t> instrs = membersOf(group);
  CDL_ASSIGN(const std::vector<BandMember> members,
             bandsOf(program, instrs, group.bandDim, group.bands));
  CDL_TRY(checkWaits(program, group));
  return Judge(program, group, members).run();
}

namespace {

Status verifyGroup(const Program& program, uint32_t index) {
  const Group& group = program.groups[index];
  if (index) {
    const Group& before = program.groups[index - 1];
    if (group.first < before.first + before.count)
      return badModel(
          "starts at instruction {}, inside of or before the group that stands before it",
          group.first + 1);
  }
  for (uint32_t i = group.first; i < group.first + group.count; ++i)
    if (program.instrs[i].group != index)
      return badModel("{} lies in its range but names another group", program.instrName(i));
  for (const Loop& loop : program.loops) {
    const uint64_t loopEnd = uint64_t(loop.first) + loop.count,
                   end = uint64_t(group.first) + group.count;
    const bool apart = loopEnd <= group.first || end <= loop.first;
    const bool inside = group.first >= loop.first && end <= loopEnd;
    if (!apart && !inside && (loop.first < group.first || loopEnd > end))
      return badModel("it and the loop at instruction {} cut each other", loop.first + 1);
  }
  return Status::ok();
}

} // namespace

/// The text nests regions, where an image lists them.
Status verifyRegions(const Program& program) {
  for (uint32_t l = 1; l < program.loops.size(); ++l)
    if (program.loops[l - 1].first > program.loops[l].first)
      return badModel("loop {}: starts at instruction {}, before the loop that stands before it",
                      l + 1, program.loops[l].first + 1);
  for (uint32_t g = 0; g < program.groups.size(); ++g)
    CDL_TRY(verifyGroup(program, g).context(fmt::format("group {}", g + 1)));
  return Status::ok();
}

Status verifyAllBands(const Program& program, Suspect& suspect) {
  for (uint32_t g = 0; g < program.groups.size(); ++g) {
    suspect.instr = program.groups[g].first;
    CDL_TRY(verifyBands(program, program.groups[g]).context(fmt::format("group {}", g + 1)));
  }
  suspect.instr = kNone;
  return Status::ok();
}

} // namespace candela::program
