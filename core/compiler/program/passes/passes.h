#pragma once

#include <optional>

#include "core/compiler/capabilities/target.h"
#include "core/compiler/program/passes/pack/pack.h"
#include "core/compiler/program/passes/schedule/schedule.h"
#include "core/compiler/program/passes/tile/tile.h"

/// Program -> Program: every pass in one form, and the one list of them.
namespace candela::program::passes {

/// What passes read besides the Program.
struct PassContext {
  /// whose rows decide what may be read and written by other strides
  const capabilities::Target* target = nullptr;
  std::optional<tile::Machine> machine; ///< local memories to tile for
  pack::Packer packer;                  ///< of the device; null: it packs no constants
  schedule::ScheduleOptions schedule;
  uint64_t bandBytes = 0; ///< that the values inside of a group may hold at once; 0: no groups
};

/// What a pass says about the Program that it left.
struct PassReport {
  /// of the default space; 0 before buffers have offsets
  uint64_t arenaBytes = 0, maxLiveBytes = 0;
  std::optional<tile::TileReport> tiles; ///< of `tile`
};

/// One line of passes.inc.
struct PassInfo {
  enum class Needs : uint8_t { nothing, target, machine };

  std::string_view name;
  Needs needs;
  std::string_view summary, values; ///< what it does, and what becomes of the numbers
  /// Rewrites in place. The Program verifies before and after, and means the same.
  Result<PassReport> (*run)(Program& program, const PassContext& context);
};

std::span<const PassInfo> allPasses();

/// Runs the named passes in order. Failures: invalid_argument for an unknown name, listing the
/// known ones, and for a pass whose need the context does not meet; those of the passes.
Result<PassReport> runPasses(Program& program, std::span<const std::string_view> names,
                             const PassContext& context);

} // namespace candela::program::passes
