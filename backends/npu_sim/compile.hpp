// A Program as a program of the NPU.
#pragma once

#include "codegen/program_image.hpp"

namespace npu_sim {

struct Compiled {
  npu::Binary binary;
  std::vector<Layout::Part> parts;     ///< what is copied before and after an execution
  std::string costs;                   ///< JSON: bytes by DMA and products of each node
  std::vector<uint32_t> instrOfSymbol; ///< of the image, by symbol of the binary; 0: none
};

/// Bytes at the end of the scratchpad that the compiler keeps for itself. What is before them is
/// the device's local memory, a multiple of 64 bytes.
int64_t reservedBytes(const npu::Configuration& configuration);

/// The configuration as the compiler of a Program for one core and one memory sees it: what only
/// the time of a program depends on has its default. So programs for configurations that differ in
/// these keys alone are the same: clock_mhz, dram.type, dram.width_bits, dram.bytes,
/// dma.outstanding, command.queue_depth. Others are as they were.
npu::Configuration compiledConfiguration(const npu::Configuration& configuration);

/// `image` was checked; payloads as ProgramBackend::compile has them, null where time alone is
/// asked. Of several cores as many are used as are fastest, all of them or a half, a quarter and so
/// on. REFUSED names the instruction.
cdl::Status compileFastest(const cdl_image_t* image, const void* const* payloads,
                           const npu::Configuration& configuration, Compiled& compiled);

} // namespace npu_sim
