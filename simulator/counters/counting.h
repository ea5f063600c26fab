#pragma once

#include "simulator/binary/binary.h"
#include "simulator/config/configuration.h"
#include "simulator/isa/codec.h"
#include "simulator/timing/report.h"

namespace candela::npu {

/// What the counters of the PMU say of instructions without running them: they follow from
/// descriptors, as time does. The hardware counts the same by events
/// (rtl/command/cdl_npu_counts.sv); of the scratchpad every byte that a port moves, as often as it
/// does.
class Counting {
public:
  /// Keeps references: both must outlive it.
  Counting(const Configuration& configuration, const Binary& binary)
      : configuration_(configuration), binary_(binary) {}

  /// What one instruction counts, those of the matrix engine in their order (mm streams through
  /// what ldw loaded). Of what is counted for each instruction alike, such as its word, nothing.
  Counters of(const Operation& operation);

private:
  const Configuration& configuration_;
  const Binary& binary_;
  struct Weights {
    int64_t k = 0, n = 0;
  };
  Weights shadow_, active_;
};

} // namespace candela::npu
