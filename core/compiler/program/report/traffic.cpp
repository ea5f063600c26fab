#include "core/compiler/program/report/traffic.h"

#include <algorithm>
#include <set>

#include "core/compiler/program/bands.h"

namespace candela::program::report {

namespace {

/// Whether an instruction only fills the border around what a buffer holds.
bool fillsBorder(const Program& program, const Instr& instr) {
  return instr.kind == CDL_KIND_FILL && program.buffers[instr.outputs[0].buffer].halo;
}

uint64_t runsOf(const Program& program, const Instr& instr) {
  uint64_t runs = 1;
  for (uint32_t l = instr.loop; l != kNone; l = program.loops[l].parent)
    runs *= program.loops[l].trip;
  return runs;
}

bool isSame(const View& a, const View& b) {
  return a.buffer == b.buffer && a.elem == b.elem && a.offset == b.offset && a.dims == b.dims &&
         a.strides == b.strides && std::ranges::equal(a.ivStrides, b.ivStrides);
}

constexpr int64_t kMostCounted = int64_t{1} << 28;

/// One by one: for strides that meet the same element in ways that no closed form tells. Walks that
/// reach further than any tensor count every visit.
uint64_t countOneByOne(const std::vector<std::pair<int64_t, int64_t>>& walk, int64_t reach) {
  if (reach >= kMostCounted) {
    uint64_t visits = 1;
    for (const auto& [stride, count] : walk) visits *= static_cast<uint64_t>(count);
    return visits;
  }
  std::vector<bool> reached{true};
  for (const auto& [stride, count] : walk) {
    std::vector<bool> next(reached.size() + static_cast<size_t>(stride * (count - 1)), false);
    for (size_t at = 0; at < reached.size(); ++at)
      for (int64_t i = 0; reached[at] && i < count; ++i)
        next[at + static_cast<size_t>(i * stride)] = true;
    reached = std::move(next);
  }
  return static_cast<uint64_t>(std::ranges::count(reached, true));
}

/// Per group: the most bytes that its own values take at once, in one band.
class Groups {
public:
  Groups(const Program& program, std::span<const uint64_t> content)
      : program_(program), ownerOf_(content.size(), kNone) {
    struct Span {
      uint32_t first = kNone, last = 0;
    };
    std::vector<Span> spans(program.buffers.size());
    std::vector<bool> shared(program.buffers.size(), false);
    for (uint32_t i = 0; i < program.instrs.size(); ++i) {
      if (fillsBorder(program, program.instrs[i])) continue; // it may stand before the group
      for (const auto* views : {&program.instrs[i].inputs, &program.instrs[i].outputs})
        for (const View& view : *views) {
          Span& span = spans[view.buffer];
          const uint32_t group = program.instrs[i].group;
          if (span.first == kNone)
            ownerOf_[view.buffer] = group;
          else if (ownerOf_[view.buffer] != group)
            shared[view.buffer] = true;
          span.first = std::min(span.first, i);
          span.last = i;
        }
    }
    for (uint32_t b = 0; b < program.buffers.size(); ++b)
      if (shared[b] || program.buffers[b].role != Role::temp) ownerOf_[b] = kNone;
    fits_.assign(program.groups.size(), true);
    for (uint32_t g = 0; g < program.groups.size(); ++g) {
      const Group& group = program.groups[g];
      if (group.bands > 1) { // rows that are kept for the next band count too
        std::vector<bool> inside(program.buffers.size());
        for (uint32_t b = 0; b < program.buffers.size(); ++b) inside[b] = ownerOf_[b] == g;
        const auto members = bandsOf(program, membersOf(group), group.bandDim, group.bands);
        fits_[g] = members && bytesHeld(program, *members, inside, content) <= kBandBytes;
        continue;
      }
      for (uint32_t i = group.first; i < group.first + group.count; ++i) {
        uint64_t live = 0;
        for (uint32_t b = 0; b < program.buffers.size(); ++b)
          if (ownerOf_[b] == g && spans[b].first <= i && i <= spans[b].last) live += content[b];
        if (live > kBandBytes) fits_[g] = false;
      }
    }
  }
  bool keeps(uint32_t buffer) const { return ownerOf_[buffer] != kNone && fits_[ownerOf_[buffer]]; }

private:
  const Program& program_;
  std::vector<uint32_t> ownerOf_; ///< the group that alone touches a buffer
  std::vector<bool> fits_;
};

bool isElementwise(uint16_t kind) {
  return kind == CDL_KIND_BINARY || kind == CDL_KIND_UNARY || kind == CDL_KIND_COMPARE ||
         kind == CDL_KIND_SELECT || kind == CDL_KIND_CONVERT || kind == CDL_KIND_ELEMENTWISE ||
         kind == CDL_KIND_RESCALE || kind == CDL_KIND_TABLE || kind == CDL_KIND_COPY;
}

} // namespace

Traffic& Traffic::operator+=(const Traffic& other) {
  read += other.read;
  written += other.written;
  constants += other.constants;
  return *this;
}

uint64_t distinctElements(const View& view) {
  std::vector<std::pair<int64_t, int64_t>> walk; // stride, count
  for (size_t d = 0; d < view.dims.size(); ++d) {
    if (view.dims[d] == 0) return 0;
    if (view.dims[d] > 1 && view.strides[d] != 0)
      walk.emplace_back(std::abs(view.strides[d]), view.dims[d]);
  }
  std::ranges::sort(walk);
  // Runs of runs: each level is `length` copies of the one below, `unit` apart, and none of them
  // meet.
  int64_t unit = 1, length = 1, reach = 0;
  uint64_t below = 1;
  int64_t whole = 0;
  for (const auto& [stride, count] : walk) whole += (count - 1) * stride;
  for (const auto& [stride, count] : walk) {
    if (stride > reach) {
      below *= static_cast<uint64_t>(length);
      unit = stride;
      length = count;
    } else if (stride % unit == 0 && stride / unit <= length) {
      length += (count - 1) * (stride / unit);
    } else {
      return countOneByOne(walk, whole);
    }
    reach += (count - 1) * stride;
  }
  return below * static_cast<uint64_t>(length);
}

ProgramTraffic trafficOf(const Program& program, std::span<const uint64_t> contentBytes) {
  std::vector<uint64_t> content(contentBytes.begin(), contentBytes.end());
  if (content.empty())
    for (const Buffer& buffer : program.buffers) content.push_back(buffer.bytes);
  CDL_CHECK(content.size() == program.buffers.size(), "{} contents for {} buffers", content.size(),
            program.buffers.size());
  const Groups groups(program, content);
  ProgramTraffic traffic;
  traffic.buffers.resize(program.buffers.size());
  for (uint32_t b = 0; b < program.buffers.size(); ++b)
    traffic.withinGroup.push_back(groups.keeps(b));
  for (const Instr& instr : program.instrs) {
    Traffic& moved = traffic.instrs.emplace_back();
    if (fillsBorder(program, instr)) continue;
    const uint64_t runs = runsOf(program, instr);
    // Views of one buffer together reach no more than what it holds.
    const auto add = [&](const std::vector<View>& views, uint64_t Traffic::* ofActivations,
                         uint64_t Traffic::* ofConstants) {
      std::map<uint32_t, uint64_t> bytes;
      for (size_t v = 0; v < views.size(); ++v) {
        const auto isSeen = [&](const View& earlier) { return isSame(earlier, views[v]); };
        if (!std::any_of(views.begin(), views.begin() + static_cast<std::ptrdiff_t>(v), isSeen))
          bytes[views[v].buffer] += elemBytes(views[v].elem, distinctElements(views[v]));
      }
      for (const auto& [buffer, count] : bytes) {
        if (traffic.withinGroup[buffer]) continue;
        Traffic one;
        const bool isConstant = program.buffers[buffer].role == Role::constant;
        one.*(isConstant ? ofConstants : ofActivations) = std::min(count, content[buffer]) * runs;
        moved += one;
        traffic.buffers[buffer] += one;
      }
    };
    add(instr.inputs, &Traffic::read, &Traffic::constants);
    add(instr.outputs, &Traffic::written, &Traffic::written);
    if (instr.inout) add(instr.outputs, &Traffic::read, &Traffic::constants);
    traffic.total += moved;
  }
  return traffic;
}

std::vector<Passage> missedFusions(const Program& program, const ProgramTraffic& traffic) {
  struct Ends {
    std::set<uint32_t> writers, readers;
  };
  std::vector<Ends> ends(program.buffers.size());
  for (uint32_t i = 0; i < program.instrs.size(); ++i) {
    if (fillsBorder(program, program.instrs[i])) continue;
    for (const View& view : program.instrs[i].inputs) ends[view.buffer].readers.insert(i);
    for (const View& view : program.instrs[i].outputs) ends[view.buffer].writers.insert(i);
  }
  std::vector<Passage> passages;
  for (uint32_t b = 0; b < program.buffers.size(); ++b) {
    if (program.buffers[b].role != Role::temp || traffic.withinGroup[b]) continue;
    if (ends[b].writers.size() != 1 || ends[b].readers.size() != 1) continue;
    const uint32_t writer = *ends[b].writers.begin(), reader = *ends[b].readers.begin();
    if (writer == reader ||
        !(isElementwise(program.instrs[writer].kind) || isElementwise(program.instrs[reader].kind)))
      continue;
    passages.push_back({b, writer, reader, traffic.buffers[b].activations()});
  }
  std::ranges::stable_sort(passages,
                           [](const Passage& a, const Passage& c) { return a.bytes > c.bytes; });
  return passages;
}

} // namespace candela::program::report
