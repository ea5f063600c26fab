#include "core/runtime/image_walk.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/support/elem.h"

namespace candela::runtime {
namespace {

struct Walker {
  const cdl_image_t* image;
  const std::function<bool(uint32_t)>& split;
  const std::function<Status(uint32_t, uint32_t, const LoopValues&)>& visit;

  /// The loop directly inside of `outer` that begins at instruction i, or 0.
  uint32_t loopAt(uint32_t i, uint32_t outer) const {
    for (uint32_t l = cdl_get_instr(image, i)->loop; l != 0; l = cdl_get_loop(image, l)->parent)
      if (cdl_get_loop(image, l)->parent == outer) return l;
    return 0;
  }

  Status block(uint32_t first, uint32_t end, uint32_t loop, int depth, LoopValues& values) {
    for (uint32_t i = first; i < end;) {
      if (cdl_get_instr(image, i)->loop == loop) {
        uint32_t last = i + 1;
        while (last < end && cdl_get_instr(image, last)->loop == loop && !split(last)) ++last;
        CDL_TRY(visit(i, last - i, values));
        i = last;
        continue;
      }
      const uint32_t inner = loopAt(i, loop);
      if (inner == 0 || depth == CDL_MAX_LOOP_NESTING) return badModel("instruction {} is in no loop of its block", i);
      const cdl_loop_t& record = *cdl_get_loop(image, inner);
      for (uint64_t iv = 0; iv < record.trip; ++iv) {
        values.values[depth] = static_cast<int64_t>(iv);
        CDL_TRY(block(record.first, record.first + record.count, inner, depth + 1, values));
      }
      values.values[depth] = 0;
      i = record.first + record.count;
    }
    return Status::ok();
  }
};

} // namespace

Status walkImage(const cdl_image_t* image, const std::function<bool(uint32_t)>& split,
                 const std::function<Status(uint32_t, uint32_t, const LoopValues&)>& visit) {
  LoopValues values;
  if (image->instrs.count < 2) return Status::ok();
  return Walker{image, split, visit}.block(1, image->instrs.count, 0, 0, values);
}

std::vector<std::byte> splatBytes(const cdl_constant_t& constant) {
  std::vector<std::byte> bytes(constant.bytes);
  const int bits = elemBits(static_cast<Elem>(constant.elem));
  if (bits == 4) {
    std::fill(bytes.begin(), bytes.end(), std::byte((constant.bits & 15) * 17));
    return bytes;
  }
  const size_t size = bits / 8;
  for (size_t at = 0; at + size <= bytes.size(); at += size) std::memcpy(bytes.data() + at, &constant.bits, size);
  return bytes;
}

uint64_t arenaBytes(const cdl_image_t* image, uint32_t space) {
  uint64_t bytes = 0;
  for (uint32_t b = 1; b < image->buffers.count; ++b) {
    const cdl_buffer_t& buffer = *cdl_get_buffer(image, b);
    if (buffer.role == CDL_ROLE_TEMP && buffer.space == space && buffer.offset != CDL_UNPLACED)
      bytes = std::max(bytes, buffer.offset + buffer.bytes);
  }
  return bytes;
}

} // namespace candela::runtime
