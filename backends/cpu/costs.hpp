// What Programs cost on this backend, without compiling them.
#pragma once

#include "isa.hpp"

#include <candela/backend.hpp>

namespace cpu {

/// By a table of rates that were measured (benchmarks/cpu/costs.py): the larger one of what an
/// instruction computes and what it moves. Costs rank devices and placements; they are the same on
/// every machine of a tier, whatever its clock.
class Costs {
public:
  Costs(const Isa& isa, int threads) : isa_(isa), threads_(threads) {}

  /// Nanoseconds that an instruction of a checked image takes, once.
  double nanoseconds(const cdl_image_t* image, uint32_t instr) const;
  /// The same of all instructions, as often as loops run them.
  double nanoseconds(const cdl_image_t* image) const;

private:
  const Isa& isa_;
  int threads_;
};

} // namespace cpu
