#include "core/compiler/program/dependences.h"

#include <algorithm>
#include <map>

namespace candela::program {

namespace {

/// Adds the reach of an index that runs over `extent` values to [low, high].
void extend(int64_t& low, int64_t& high, int64_t extent, int64_t stride) {
  const int64_t reach = (extent - 1) * stride;
  (reach < 0 ? low : high) += reach;
}

/// Trip counts of the enclosing loops, outer first; 1 where there is none.
std::pair<int64_t, int64_t> trips(const Program& program, const Instr& instr) {
  if (instr.loop == kNone) return {1, 1};
  const Loop& loop = program.loops[instr.loop];
  const auto own = static_cast<int64_t>(loop.trip);
  if (loop.parent == kNone) return {own, 1};
  return {static_cast<int64_t>(program.loops[loop.parent].trip), own};
}

/// What later instructions may still have to wait for in one region.
struct Pending {
  struct Entry {
    uint64_t begin;
    uint64_t end;
    uint32_t instr;
  };
  std::vector<Entry> reads, writes; ///< in the order of instructions

  /// Adds what an access waits for to an ascending list.
  void collect(const Access& access, uint32_t instr, std::vector<uint32_t>& out) const {
    const auto from = [&](const std::vector<Entry>& entries) {
      const auto known = static_cast<std::ptrdiff_t>(out.size());
      for (const Entry& entry : entries)
        if (entry.instr != instr && entry.begin < access.end && access.begin < entry.end)
          out.push_back(entry.instr);
      std::inplace_merge(out.begin(), out.begin() + known, out.end());
    };
    from(writes);
    if (access.write) from(reads);
  }
  /// A write that covers an earlier access waits for it; whoever meets that one later meets the
  /// write too.
  void add(const Access& access, uint32_t instr) {
    if (access.write) {
      const auto covered = [&](const Entry& entry) {
        return access.begin <= entry.begin && entry.end <= access.end;
      };
      std::erase_if(reads, covered);
      std::erase_if(writes, covered);
    }
    (access.write ? writes : reads).push_back({access.begin, access.end, instr});
  }
};

} // namespace

Access accessOf(const Program& program, const Instr& instr, const View& view, bool write) {
  const Buffer& buffer = program.buffers[view.buffer];
  Access access;
  access.write = write;
  access.region = view.buffer;
  if (view.layout.opaque || (buffer.halo && !write)) { // who reads the content may read the border
    access.end = buffer.bytes;
  } else {
    if (std::ranges::find(view.dims, 0) != view.dims.end()) return access;
    int64_t low = view.offset, high = view.offset;
    for (size_t d = 0; d < view.dims.size(); ++d) extend(low, high, view.dims[d], view.strides[d]);
    const auto [outer, inner] = trips(program, instr);
    extend(low, high, outer, view.ivStrides[0]);
    extend(low, high, inner, view.ivStrides[1]);
    const int bits = elemBits(view.elem);
    access.begin = static_cast<uint64_t>(low) * bits / 8;
    access.end = (static_cast<uint64_t>(high + 1) * bits + 7) / 8;
  }
  if (buffer.role == Role::temp && buffer.offset != CDL_UNPLACED) {
    access.region = (uint64_t{1} << 32) + buffer.space;
    access.begin += buffer.offset;
    access.end += buffer.offset;
  }
  return access;
}

std::vector<Access> accessesOf(const Program& program, const Instr& instr) {
  std::vector<Access> accesses;
  const auto add = [&](const std::vector<View>& views, bool write) {
    for (const View& view : views) {
      const Access access = accessOf(program, instr, view, write);
      if (access.begin < access.end) accesses.push_back(access);
    }
  };
  add(instr.inputs, false);
  if (instr.inout) add(instr.outputs, false);
  add(instr.outputs, true);
  return accesses;
}

std::vector<std::vector<uint32_t>> directDependences(const Program& program) {
  std::map<uint64_t, Pending> regions;
  std::vector<std::vector<uint32_t>> result(program.instrs.size());
  for (uint32_t i = 0; i < program.instrs.size(); ++i) {
    const auto accesses = accessesOf(program, program.instrs[i]);
    std::vector<uint32_t>& found = result[i];
    for (const Access& access : accesses) regions[access.region].collect(access, i, found);
    for (const Access& access : accesses) regions[access.region].add(access, i);
    found.erase(std::unique(found.begin(), found.end()), found.end());
  }
  return result;
}

void rebuildWaits(Program& program) {
  auto dependences = directDependences(program);
  for (size_t i = 0; i < program.instrs.size(); ++i) {
    Instr& instr = program.instrs[i];
    std::erase_if(dependences[i],
                  [&](uint32_t wait) { return program.instrs[wait].loop != instr.loop; });
    instr.waits = std::move(dependences[i]);
  }
}

} // namespace candela::program
