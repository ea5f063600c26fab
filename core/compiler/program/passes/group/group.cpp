#include "core/compiler/program/passes/group/group.h"

#include <algorithm>
#include <unordered_map>

#include "core/compiler/program/bands.h"
#include "core/compiler/program/passes/schedule/lifetimes.h"
#include "core/compiler/program/passes/schedule/simplify.h"

namespace candela::program::passes::group {

namespace {

constexpr uint32_t kRows = 2;       ///< of images: the logical dim that bands cut
constexpr size_t kMostMembers = 16; ///< of one group
/// bytes of traffic that starting one member for one band is worth
constexpr uint64_t kBandCost = 1 << 12;
constexpr int64_t kLeastSaved = 1 << 12; ///< bytes
constexpr uint32_t kBands[] = {2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64};

bool fillsBorder(const Program& program, const Instr& instr) {
  return instr.kind == CDL_KIND_FILL && program.buffers[instr.outputs[0].buffer].halo;
}

/// May it stand in a group of several bands?
bool mayJoin(const Program& program, const Instr& instr) {
  if (!isBandable(instr) || instr.loop != kNone || instr.inout) return false;
  const Role role = program.buffers[instr.outputs[0].buffer].role;
  return role == Role::temp || role == Role::output;
}

template <typename Visit> void eachView(const Instr& instr, const Visit& visit) {
  for (const auto* views : {&instr.inputs, &instr.outputs})
    for (const View& view : *views) visit(view);
}

/// Members first .. end - 1 of a run as one group.
struct Choice {
  size_t first = 0, end = 0;
  uint32_t bands = 0; ///< 0: no group
  int64_t gain = 0;   ///< bytes
};

class Grouping {
public:
  Grouping(Program& program, uint64_t bandBytes) : program_(program), bandBytes_(bandBytes) {
    uses_.assign(program.buffers.size(), 0);
    for (const Instr& instr : program.instrs)
      if (!fillsBorder(program, instr))
        eachView(instr, [&](const View& view) { ++uses_[view.buffer]; });
    for (const Buffer& buffer : program.buffers) bytes_.push_back(buffer.bytes);
    mostMemory_ = schedule::peakBytes(program, schedule::sharesOf(program, true))[0];
  }

  void run() {
    std::vector<uint32_t> members;
    for (uint32_t i = 0; i <= program_.instrs.size(); ++i) {
      const bool ends = i == program_.instrs.size() || !mayJoin(program_, program_.instrs[i]);
      if (!ends && !fillsBorder(program_, program_.instrs[i])) members.push_back(i);
      if (!ends) continue;
      if (members.size() > 1) cut(members);
      members.clear();
    }
    apply();
  }

private:
  struct Marked {
    uint32_t first = 0, last = 0, bands = 1; ///< instructions, and border fills between them
  };

  /// The best way to cut a run into groups: one pass over all of its ends.
  void cut(const std::vector<uint32_t>& run) {
    std::vector<Choice> best(run.size() + 1);
    std::vector<int64_t> gain(run.size() + 1, 0);
    for (size_t end = 1; end <= run.size(); ++end) {
      best[end] = {end - 1, end, 0, 0};
      gain[end] = gain[end - 1];
      for (size_t length = 2; length <= std::min(end, kMostMembers); ++length) {
        const Choice choice = judge(run, end - length, end);
        if (!choice.bands || gain[choice.first] + choice.gain <= gain[end]) continue;
        gain[end] = gain[choice.first] + choice.gain;
        best[end] = choice;
      }
    }
    for (size_t end = run.size(); end > 0; end = best[end].first)
      if (best[end].bands) marked_.push_back({run[best[end].first], run[end - 1], best[end].bands});
  }

  /// How members use a buffer: views of it, and the first and the last member that has one.
  struct Use {
    uint32_t views = 0;
    size_t first = 0, last = 0;
  };

  std::unordered_map<uint32_t, Use> usesIn(std::span<const uint32_t> members) const {
    std::unordered_map<uint32_t, Use> uses;
    for (size_t m = 0; m < members.size(); ++m)
      eachView(program_.instrs[members[m]], [&](const View& view) {
        Use& use = uses[view.buffer];
        if (use.views++ == 0) use.first = m;
        use.last = m;
      });
    return uses;
  }

  Choice judge(const std::vector<uint32_t>& run, size_t first, size_t end) const {
    const auto members = std::span(run).subspan(first, end - first);
    std::vector<uint32_t> inside;
    int64_t saved = 0;
    uint64_t touched = 0, constants = 0;
    std::vector<uint64_t> live(members.size(), 0);
    for (const auto& [b, use] : usesIn(members)) {
      (program_.buffers[b].role == Role::constant ? constants : touched) += bytes_[b];
      if (use.views != uses_[b] || program_.buffers[b].role != Role::temp) continue;
      inside.push_back(b);
      saved += static_cast<int64_t>(bytes_[b] * use.views);
      for (size_t m = use.first; m <= use.last; ++m) live[m] += bytes_[b];
    }
    Choice choice{first, end, 0, saved};
    if (saved < kLeastSaved) return choice;
    const uint64_t most = *std::ranges::max_element(live);
    if (most <= bandBytes_) {
      choice.bands = 1;
      return choice;
    }
    if (touched > mostMemory_) return choice;
    std::vector<bool> isInside(program_.buffers.size(), false);
    for (const uint32_t b : inside) isInside[b] = true;
    for (const uint32_t bands : kBands) {
      if (bands < most / bandBytes_) continue;
      const auto rows = bandsOf(program_, members, kRows, bands);
      if (!rows) break;
      if (bytesHeld(program_, *rows, isInside, bytes_) > bandBytes_) continue;
      choice.bands = bands;
      // Each band reads the weights again, which do not stay near beside what streams past.
      choice.gain -=
          static_cast<int64_t>(kBandCost * bands * members.size() + constants * (bands - 1));
      if (choice.gain <= 0) choice.bands = 0;
      break;
    }
    return choice;
  }

  void apply() {
    std::ranges::sort(marked_, {}, &Marked::first);
    std::vector<uint32_t> order;
    std::vector<Group> groups;
    uint32_t next = 0;
    const auto upTo = [&](uint32_t end) {
      for (; next < end; ++next) order.push_back(next);
    };
    for (const Marked& mark : marked_) {
      upTo(mark.first);
      std::vector<uint32_t> members;
      for (; next <= mark.last; ++next) {
        const bool isMoved = mark.bands > 1 && fillsBorder(program_, program_.instrs[next]);
        (isMoved ? order : members).push_back(next);
      }
      groups.push_back({static_cast<uint32_t>(order.size()), static_cast<uint32_t>(members.size()),
                        kRows, mark.bands});
      order.insert(order.end(), members.begin(), members.end());
    }
    upTo(static_cast<uint32_t>(program_.instrs.size()));
    Program other = program_;
    schedule::reorder(other, order);
    for (uint32_t i = 0; i < other.instrs.size(); ++i)
      if (std::ranges::any_of(other.instrs[i].waits, [&](uint32_t wait) { return wait >= i; }))
        return; // a fill waits for what it was moved over
    for (const Group& group : groups) {
      if (!verifyBands(other, group)) continue;
      for (uint32_t i = group.first; i < group.first + group.count; ++i)
        other.instrs[i].group = static_cast<uint32_t>(other.groups.size());
      other.groups.push_back(group);
    }
    program_ = std::move(other);
  }

  Program& program_;
  const uint64_t bandBytes_;
  uint64_t mostMemory_ = 0;
  std::vector<uint32_t> uses_;  ///< views of each buffer, but for those that fill its border
  std::vector<uint64_t> bytes_; ///< of each buffer
  std::vector<Marked> marked_;
};

} // namespace

void markGroups(Program& program, uint64_t bandBytes) {
  if (bandBytes && program.groups.empty()) Grouping(program, bandBytes).run();
}

} // namespace candela::program::passes::group
