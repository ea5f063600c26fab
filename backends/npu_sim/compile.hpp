// A Program as a program of the NPU.
#pragma once

#include "codegen/image.hpp"

namespace npu_sim {

struct Compiled {
  npu::Binary binary;
  std::vector<Layout::Part> parts;     ///< what is copied before and after an execution
  std::string costs;                   ///< JSON: bytes by DMA and products of each node
  std::vector<uint32_t> instrOfSymbol; ///< of the image, by symbol of the binary; 0: none
};

/// The end of the scratchpad, which the compiler keeps for itself: places for records and tables. What is before it is
/// the device's local memory.
struct Reserve {
  int64_t each = 0, places = 0;
  int64_t bytes() const { return each * places; }
};
Reserve reserveOf(const npu::Configuration& configuration);

/// `image` was checked; payloads as ProgramBackend::compile has them. REFUSED names the instruction.
cdl::Status compileProgram(const cdl_image_t* image, const void* const* payloads, const npu::Configuration& configuration,
                           Compiled& compiled);

} // namespace npu_sim
