#pragma once

#include "core/compiler/driver/fit.h"
#include "core/compiler/driver/traffic.h"
#include "tools/candela/support/model.h"
#include "tools/candela/support/placement.h"

namespace candela::tool {

/// What the backends would get, up to where they compile.
struct LoweredModel {
  std::vector<std::string> backends; ///< names of the targets, soft last
  std::vector<driver::LoweredPart> parts;
  std::vector<uint64_t> bandBytes;         ///< of the backends but soft, as the pipeline takes it
  std::vector<driver::Overflow> overflows; ///< of devices that cannot hold everything at once
  /// What fits on a device not even alone.
  struct TooLarge {
    std::string backend, node, why;
  };
  std::vector<TooLarge> tooLarge;
  std::string flow; ///< what is between the Graphs where the model decides at run, as text
  program::report::Traffic traffic; ///< of one instruction for each node of the model
  PlacedModel placed;               ///< nodes as they are partitioned
};

/// The devices of --backend but soft, which is always the last target. Throws Failure.
std::vector<std::shared_ptr<runtime::plugin::Device>> openDevices(const ModelOptions& options);

/// What --tile says; nullopt without it. Throws Failure.
std::optional<program::passes::tile::Machine> machineOf(const ModelOptions& options);

/// As the pipeline does it: every Graph of the model, by `compile` and the --to-primitives of
/// `options`. Throws Failure naming the file.
LoweredModel lowerModel(const ModelOptions& options, driver::CompileOptions compile);

} // namespace candela::tool
