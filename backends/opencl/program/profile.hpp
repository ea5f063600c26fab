// What the texts of kernels depend on beside the instruction: the kind of device that runs them.
#pragma once

#include "../opencl.hpp"

namespace program {

/// How kernels are written for a device.
struct Profile {
  enum class Style : uint8_t {
    cpu, ///< a work-item is a work-group and computes a block of results in registers
    gpu  ///< neighbouring work-items read neighbouring elements; groups share tiles in local memory
  };

  Style style = Style::cpu;
  int64_t points = 6;       ///< results of 16 channels that a work-item of a CPU sums at once
  int64_t unroll = 4;       ///< steps of the innermost sum that are written out
  int64_t groupItems = 256; ///< work-items of a group of a GPU that sums: 16 a side, or 8 of 64
  int64_t tileResults = 64; ///< results a side of the tile of such a group
  int64_t tileDepth = 16;   ///< steps of the sum that a group reads into local memory at once
  int64_t localBytes = 0;   ///< what the device has of local memory
  int64_t mostItems = 1;    ///< what a group may have of work-items

  bool isGpu() const { return style == Style::gpu; }
  /// Whether a GPU can run groups as `other` wants them.
  bool canRun(const Profile& other) const;
};

/// From what the device reports, or with the style "cpu" or "gpu" instead of "auto".
Profile profileOf(const OpenCl& device, const std::string& style);

} // namespace program
