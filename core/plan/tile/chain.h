#pragma once

#include "core/plan/tile/regions.h"

/// Instructions that go tile by tile together: values between them never leave local memory.
namespace candela::plan {

/// One instruction of a chain, its views over the chain's index space.
struct Link {
  uint32_t instr = program::kNone; ///< in the Program
  program::Instr work;
  std::vector<ViewMap> inputs, outputs; ///< by the chain's axes
  /// Which input is what the link before it wrote; empty for the first one.
  std::vector<size_t> fromBefore;
};

/// The first link decides how it is cut; elementwise ones and copies follow it.
struct Chain {
  std::vector<Link> links;
  Work work; ///< of the first link, whose axes are the chain's

  const Link& last() const { return links.back(); }
  /// Where it stands among the instructions: at its last link.
  uint32_t place() const { return last().instr; }
};

/// The Program as chains in an order that runs. `isDone[i]`: instruction i is a copy of an outer level and stays as it
/// is: it is in no chain. Instructions without elements are in none either.
std::vector<Chain> chainsOf(const program::Program& program, const std::vector<bool>& isDone, bool fuse);

} // namespace candela::plan
