#include "arena.hpp"

#include <algorithm>

namespace cpu {

namespace {

/// Instructions first .. last.
struct Life {
  uint32_t first = UINT32_MAX, last = 0;

  bool isEmpty() const { return first > last; }
  void add(uint32_t instr) {
    first = std::min(first, instr);
    last = std::max(last, instr);
  }
  void add(const Life& other) {
    first = std::min(first, other.first);
    last = std::max(last, other.last);
  }
  bool meets(const Life& other) const { return first <= other.last && other.first <= last; }
};

/// What runs with an instruction, in an order that lives do not follow: its outermost loop, and its
/// group where that is in bands.
Life aroundOf(const cdl_image_t* image, uint32_t instr) {
  const cdl_instr_t& record = *cdl_get_instr(image, instr);
  Life life;
  life.add(instr);
  for (uint32_t l = record.loop; l; l = cdl_get_loop(image, l)->parent) {
    const cdl_loop_t& loop = *cdl_get_loop(image, l);
    life.add(Life{loop.first, loop.first + loop.count - 1});
  }
  if (!record.group) return life;
  const cdl_group_t& group = *cdl_get_group(image, record.group);
  if (group.bands > 1) life.add(Life{group.first, group.first + group.count - 1});
  return life;
}

std::vector<Life> livesOf(const cdl_image_t* image) {
  std::vector<Life> lives(image->buffers.count);
  for (uint32_t i = 1; i < image->instrs.count; ++i) {
    const cdl_instr_t& instr = *cdl_get_instr(image, i);
    const Life around = aroundOf(image, i);
    for (uint32_t v = 0; v < uint32_t(instr.inputs) + instr.outputs; ++v)
      lives[cdl_get_input(image, &instr, v)->buffer].add(around);
  }
  return lives;
}

/// Bytes first .. end - 1 of the arena.
struct Taken {
  uint64_t first = 0, end = 0;
};

/// The lowest multiple of 64 from which on so many bytes are free.
uint64_t firstFree(std::vector<Taken> taken, uint64_t bytes) {
  constexpr uint64_t kAlignment = 64;
  std::sort(taken.begin(), taken.end(),
            [](const Taken& a, const Taken& b) { return a.first < b.first; });
  uint64_t at = 0;
  for (const Taken& each : taken) {
    if (at + bytes <= each.first) break;
    at = std::max(at, (each.end + kAlignment - 1) / kAlignment * kAlignment);
  }
  return at;
}

/// Gives every space its place; the plan ends with the last one.
void placeSpaces(const cdl_image_t* image, ArenaPlan& plan) {
  plan.spaces.assign(image->spaces.count, 0);
  for (uint32_t s = 1; s < image->spaces.count; ++s) {
    uint64_t bytes = 0;
    uint64_t alignment = std::max(64U, cdl_get_space(image, s)->alignment);
    for (uint32_t b = 1; b < image->buffers.count; ++b) {
      const cdl_buffer_t& buffer = *cdl_get_buffer(image, b);
      if (buffer.role != CDL_ROLE_TEMP || buffer.space != s || buffer.offset == CDL_UNPLACED)
        continue;
      bytes = std::max(bytes, buffer.offset + buffer.bytes);
      alignment = std::max<uint64_t>(alignment, buffer.alignment);
    }
    plan.spaces[s] = (plan.bytes + alignment - 1) / alignment * alignment;
    plan.bytes = plan.spaces[s] + bytes;
    plan.alignment = std::max(plan.alignment, static_cast<uint32_t>(alignment));
  }
}

} // namespace

ArenaPlan planArena(const cdl_image_t* image, const std::vector<Working>& working) {
  ArenaPlan plan;
  placeSpaces(image, plan);
  const std::vector<Life> lives = livesOf(image);
  plan.scratch.assign(image->instrs.count, 0);
  for (uint32_t i = 1; i < image->instrs.count; ++i) {
    // Members of a group in bands share what the group needs: one place for all of them.
    Life busy = aroundOf(image, i);
    uint64_t bytes = 0;
    for (uint32_t member = busy.first; member <= busy.last; ++member) {
      bytes = std::max(bytes, working[member].scratchBytes);
      for (const uint32_t other : working[member].others) busy.add(aroundOf(image, other));
    }
    if (bytes == 0) continue;
    std::vector<Taken> taken;
    for (uint32_t b = 1; b < image->buffers.count; ++b) {
      const cdl_buffer_t& buffer = *cdl_get_buffer(image, b);
      const bool isHere = buffer.role == CDL_ROLE_TEMP && buffer.offset != CDL_UNPLACED;
      if (!isHere || lives[b].isEmpty() || !lives[b].meets(busy)) continue;
      const uint64_t at = plan.spaces[buffer.space] + buffer.offset;
      taken.push_back({at, at + buffer.bytes});
    }
    plan.scratch[i] = firstFree(std::move(taken), bytes);
    plan.bytes = std::max(plan.bytes, plan.scratch[i] + bytes);
  }
  return plan;
}

} // namespace cpu
