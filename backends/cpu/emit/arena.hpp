// Where the memory of one run lies, of a build ahead of time: an arena that the caller gives.
#pragma once

#include "../runtime/binary.hpp"

#include <functional>

namespace cpu {

/// What an instruction's kernels need while they run, and whose work they do too.
struct Working {
  uint64_t scratchBytes = 0;
  std::vector<uint32_t> others; // instructions that its calls do too
};

/// The TEMP buffers of each memory space one after the other, as the Program placed them, and for
/// each instruction the scratch of its kernels in what no living buffer takes.
struct ArenaPlan {
  std::vector<uint64_t> spaces;  // offset of each space of the image
  std::vector<uint64_t> scratch; // of each instruction
  uint64_t bytes = 0;
  uint32_t alignment = 64;
};

/// `working`: by instruction of the image, in its order. Instructions of a group that runs in bands
/// keep their scratch for all of the group, as those of a loop do.
ArenaPlan planArena(const cdl_image_t* image, const std::vector<Working>& working);

} // namespace cpu
