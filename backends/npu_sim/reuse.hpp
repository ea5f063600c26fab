// What was compiled for other devices of this process, for configurations that differ in keys which
// only time reads.
#pragma once

#include "compile.hpp"

namespace npu_sim {

/// As compileFastest(), for one core; a program that was compiled before in this process is copied.
/// It is found by the whole image, by compiledConfiguration() and by whether there are payloads, of
/// which the image has the hashes. Some hundred megabytes are kept.
cdl::Status compileOnce(const cdl_image_t* image, const void* const* payloads,
                        const npu::Configuration& configuration, Compiled& compiled);

} // namespace npu_sim
