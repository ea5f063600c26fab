// The vector engine widens what it reads: a CONVERT to i32 whose every reader is an instruction of
// that engine is left out, and they read the bytes or 16 bits themselves. That saves the pass of
// the CONVERT, and the readers read a quarter or half of the bytes.
#pragma once

#include <set>

#include "../codegen/program_image.hpp"

namespace npu_sim {

/// Lets readers read what was to be widened, as the image says from then on; returns the CONVERTs
/// that nothing reads any more. To be called before anything is lowered.
std::set<uint32_t> leaveOutWidenings(ProgramImage& image);

} // namespace npu_sim
