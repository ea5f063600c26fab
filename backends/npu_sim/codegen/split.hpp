// Which core runs which instructions of a Program.
//
// What has to be on one core is a unit: a product with what follows it in one pass, sums that go
// on, a result with its way to DRAM. A unit can be on any core, because the scratchpad of each is
// as large as that of the whole Program, and values lie at the same offsets: at the place of an
// instruction in the Program nothing else that is alive lies where its operands do. So copies out
// of DRAM and fills are made on each core that reads them, and a result that another core reads is
// handed over: stored behind its writer, and loaded before its first reader there. Images, rows and
// channels are all the same here.
//
// Units are placed in the order of the Program, each where it ends first by an estimate of its
// cycles: list scheduling (R. Graham, "Bounds on multiprocessing timing anomalies", 1969), in which
// a core has what it loaded before, and pays for what others hand to it.
#pragma once

#include "program_image.hpp"

namespace npu_sim {

/// The instructions of one Program by core.
struct Split {
  /// By instruction: bit c for core c; 0 for those that nobody needs.
  std::vector<uint32_t> cores;
  /// By instruction: those whose results in the scratchpad it reads, but copies and fills.
  std::vector<std::vector<uint32_t>> reads;
  /// By instruction: whether a core beside its own reads its result.
  std::vector<bool> isHanded;
  /// By instruction: the first one of its unit; its own number for copies and fills.
  std::vector<uint32_t> unitOf;
};

/// `isLeftOut`: by instruction, those that are not emitted. `used`: the first so many cores, 1 to
/// all of them, share the instructions; with one all are its.
Split splitOverCores(const ProgramImage& image, const npu::Configuration& configuration,
                     const std::vector<bool>& isLeftOut, size_t used);

} // namespace npu_sim
