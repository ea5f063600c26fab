#pragma once

#include <random>

#include "simulator/binary/binary.h"
#include "simulator/config/configuration.h"

namespace candela::npu {

/// gem16 with another array and queue, 64 KiB of scratchpad, two load channels, and int16 in every
/// second one.
Configuration randomConfiguration(std::mt19937_64& random);

/// From here on semaphores of random programs are between the control processor and engines, and
/// hold nothing up that had to wait.
inline constexpr int kControlSemaphores = 30;

/// A program that halts without a fault: `instructions` of the grammar (simulator/isa/grammar.h) on
/// random bytes, ordered by tokens, by fences, in loops, and nowhere without need. Regions: 0
/// constants, 1 input, 2 output, whose upper half is the scratchpad at the end.
Binary randomProgram(const Configuration& configuration, uint64_t seed, int instructions);

} // namespace candela::npu
