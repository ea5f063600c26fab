#pragma once

#include "core/compiler/program/passes/tile/tile.h"
#include "core/compiler/program/report/memory_map.h"
#include "core/compiler/program/report/traffic.h"
#include "tools/candela/support/lowered.h"

namespace candela::tool {

/// A Program with its plan, and what it was before.
struct PlannedPart {
  std::string backend; ///< empty: the file is the Program
  program::Program program;
  std::vector<program::report::MemoryMap> maps; ///< by space
  program::report::ProgramTraffic traffic;
  bool wasPlaced = false; ///< the file had offsets already: nothing was planned
  /// by space: the most alive at once in the order that came
  std::vector<uint64_t> emittedLiveBytes;
  program::report::Traffic emittedTraffic;
  double scheduleMs = 0, placeMs = 0;
  std::optional<program::passes::tile::TileReport> tiled; ///< for local memories
};

struct PlannedModel {
  std::string path;
  std::vector<PlannedPart> parts;
  /// of one instruction for each node; none for a Program
  std::optional<program::report::Traffic> perNode;
  PlacedModel placed;                ///< nothing for a Program
  std::vector<std::string> backends; ///< of the targets that these name
  std::vector<driver::Overflow> overflows;
  std::vector<LoweredModel::TooLarge> tooLarge;

  program::report::Traffic traffic() const;
};

/// Compiles up to where backends would, or takes the Program of a .cdl file, and plans. Throws
/// Failure naming the file.
PlannedModel planModel(const ModelOptions& options);

/// Of a Program as it stands; what has no offsets yet is planned. The options' path names it in
/// failures.
PlannedPart plannedProgram(program::Program program, const ModelOptions& options);

/// "Conv_0, Clip_1", at most three names; the buffer's own where none is known.
std::string valueText(const program::Program& program, uint32_t buffer);

} // namespace candela::tool
