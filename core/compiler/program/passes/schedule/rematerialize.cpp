// What is cheap to compute and waits long for its reader is computed again, right before that.
#include <algorithm>

#include "core/compiler/program/passes/schedule/lifetimes.h"
#include "core/compiler/program/passes/schedule/simplify.h"
#include "core/compiler/program/passes/schedule/units.h"

namespace candela::program::passes::schedule {

namespace {

constexpr int kTrials = 256; // Programs that are looked at

/// The most bytes taken at once, how many instructions take as many, and the first of those.
struct Peak {
  uint64_t bytes = 0;
  uint32_t times = 0, first = 0;
};

std::vector<Peak> peaksOf(const Program& program) {
  std::vector<std::vector<uint64_t>> change(program.spaces.size(),
                                            std::vector<uint64_t>(program.instrs.size() + 1));
  for (const Share& share : sharesOf(program, true)) {
    change[share.space][share.first] += share.bytes;
    change[share.space][share.last + 1] -= share.bytes;
  }
  std::vector<Peak> peaks(program.spaces.size());
  for (size_t space = 0; space < peaks.size(); ++space) {
    uint64_t live = 0;
    for (uint32_t i = 0; i < program.instrs.size(); ++i) {
      live += change[space][i];
      if (live > peaks[space].bytes) peaks[space] = {live, 0, i};
      peaks[space].times += live == peaks[space].bytes;
    }
  }
  return peaks;
}

/// Lower in the space, or as high in fewer places; higher in no other one.
bool isBetter(const std::vector<Peak>& a, const std::vector<Peak>& b, uint32_t space) {
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i].bytes > b[i].bytes) return false;
  return a[space].bytes < b[space].bytes || a[space].times < b[space].times;
}

bool isCheap(const Instr& instr) {
  switch (instr.kind) {
  case CDL_KIND_COPY:
  case CDL_KIND_FILL:
  case CDL_KIND_CONVERT:
  case CDL_KIND_UNARY:
  case CDL_KIND_BINARY:
  case CDL_KIND_COMPARE:
  case CDL_KIND_SELECT:
  case CDL_KIND_ELEMENTWISE:
    return instr.loop == kNone && instr.group == kNone && !instr.inout && instr.outputs.size() == 1;
  default: return false;
  }
}

bool touches(const std::vector<View>& views, uint32_t buffer) {
  return std::ranges::any_of(views, [&](const View& view) { return view.buffer == buffer; });
}

void insert(Program& program, uint32_t at, Instr instr) {
  for (auto& loop : program.loops) loop.first += loop.first >= at;
  for (auto& group : program.groups) group.first += group.first >= at;
  for (Instr& other : program.instrs)
    for (uint32_t& wait : other.waits) wait += wait >= at;
  program.instrs.insert(program.instrs.begin() + at, std::move(instr));
}

/// Values that only wait while instruction `at` runs, and where a reader of them comes next.
struct Idle {
  uint32_t buffer = 0, writer = 0, readAt = 0;
};

std::vector<Idle> idleAt(const Program& program, uint32_t at, uint32_t space) {
  std::vector<uint32_t> writers(program.buffers.size(), 0),
      lastWriter(program.buffers.size(), kNone);
  for (uint32_t i = 0; i < program.instrs.size(); ++i)
    for (const View& view : program.instrs[i].outputs) {
      ++writers[view.buffer];
      lastWriter[view.buffer] = i;
    }
  const auto writtenBetween = [&](uint32_t buffer, uint32_t first, uint32_t end) {
    for (uint32_t i = first; i < end; ++i)
      if (touches(program.instrs[i].outputs, buffer)) return true;
    return false;
  };
  const std::vector<Unit> units = unitsOf(program).units;
  std::vector<Idle> found;
  for (uint32_t b = 0; b < program.buffers.size(); ++b) {
    const Buffer& buffer = program.buffers[b];
    const uint32_t writer = lastWriter[b];
    if (buffer.role != Role::temp || buffer.space != space || buffer.halo || writers[b] != 1 ||
        writer >= at)
      continue;
    const Instr& instr = program.instrs[writer];
    if (!isCheap(instr)) continue;
    // The unit of the peak must not touch it; the first one behind that does so reads the new one.
    bool isIdle = true;
    uint32_t readAt = kNone;
    for (const Unit& unit : units) {
      const uint32_t end = unit.first + unit.count;
      if (end <= at || readAt != kNone) continue;
      const auto reads = [&](const Instr& reader) { return touches(reader.inputs, b); };
      const bool any =
          std::any_of(program.instrs.begin() + unit.first, program.instrs.begin() + end, reads);
      if (unit.first <= at)
        isIdle &= !any && writer < unit.first;
      else if (any)
        readAt = unit.first;
    }
    if (!isIdle || readAt == kNone) continue;
    if (std::ranges::any_of(instr.inputs, [&](const View& in) {
          return writtenBetween(in.buffer, writer, readAt);
        }))
      continue;
    found.push_back({b, writer, readAt});
  }
  std::ranges::stable_sort(found, std::greater<>(),
                           [&](const Idle& idle) { return program.buffers[idle.buffer].bytes; });
  return found;
}

Program withAgain(const Program& program, const Idle& idle) {
  Program other = program;
  const uint32_t again = other.addBuffer(other.buffers[idle.buffer]);
  Instr instr = other.instrs[idle.writer];
  instr.waits.clear();
  instr.outputs[0].buffer = again;
  for (size_t i = idle.readAt; i < other.instrs.size(); ++i)
    for (View& view : other.instrs[i].inputs)
      if (view.buffer == idle.buffer) view.buffer = again;
  insert(other, idle.readAt, std::move(instr));
  return other;
}

} // namespace

bool rematerialize(Program& program) {
  bool any = false;
  int trials = kTrials;
  for (uint32_t space = 0; space < program.spaces.size(); ++space) {
    // Where several instructions take as much, it needs several values to lower the peak: the
    // Program changes when all of them are done.
    Program tried = program;
    for (bool better = !program.instrs.empty(); better;) {
      better = false;
      const std::vector<Peak> peaks = peaksOf(tried);
      for (const Idle& idle : idleAt(tried, peaks[space].first, space)) {
        if (trials-- <= 0) return any;
        Program other = withAgain(tried, idle);
        const std::vector<Peak> now = peaksOf(other);
        if (!isBetter(now, peaks, space)) continue;
        tried = std::move(other);
        better = true;
        if (now[space].bytes == peaks[space].bytes) break;
        program = tried;
        any = true;
        break;
      }
    }
  }
  return any;
}

} // namespace candela::program::passes::schedule
