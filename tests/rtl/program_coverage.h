#pragma once

#include <map>
#include <string>

#include "simulator/binary/binary.h"
#include "simulator/config/configuration.h"
#include "simulator/isa/codec.h"
#include "simulator/isa/grammar.h"

namespace candela::npu {

/// Functional coverage: what of the instruction set programs have had executed. The bins follow
/// from the tables of the set and of its grammar: each operation on each engine, waiting,
/// signalling and marked, with each member of an enum, and for each single bit and each field that
/// random programs draw, of its word and of its descriptors, the least value and one above it.
class ProgramCoverage {
public:
  /// Bins of what the configuration has: its engines, 16 bits.
  explicit ProgramCoverage(const Configuration& configuration);
  /// Adds what a program executes, loops unrolled. Errors: a word that is none.
  Outcome take(const Binary& binary);
  /// How often each bin was hit, by names such as `conv.window.a_type=u8`.
  const std::map<std::string, uint64_t>& bins() const { return bins_; }

private:
  void add(const Operation& operation);
  void addField(const std::string& name, const FieldInfo& field, const Draw& draw, int64_t value);
  void hit(const std::string& bin);

  std::map<std::string, uint64_t> bins_;
};

} // namespace candela::npu
