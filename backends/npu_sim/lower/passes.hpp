// Into which passes of the array a convolution cuts its sum.
#pragma once

#include "../codegen/stream.hpp"

namespace npu_sim {

/// Sets taps and flat in the window of a conv whose other fields are final, so that it takes the
/// fewest cycles that the timing model knows of; among equals those that read the scratchpad least,
/// then channels by themselves, then fewer packed taps.
void choosePasses(const npu::Configuration& configuration, npu::DescriptorValues& window);

} // namespace npu_sim
