#pragma once

#include "core/compiler/train/step_graph.h"
#include "tools/candela/support/console.h"

/// What training goes on from.
namespace candela::tool {

struct Checkpoint {
  int64_t epochs = 0; ///< that are done
  int64_t steps = 0;
  Json settings;                ///< of training, as --json shows them
  Json history = Json::array(); ///< of the epochs
  std::vector<Tensor> states;   ///< in the order of StepGraph::states
};

/// A line that says what it is, a line of JSON, the states' bytes and their SHA-256. An old file
/// survives a failure.
/// Throws Failure (kWorkFailed) naming the file.
void writeCheckpoint(const std::string& path, const Checkpoint& checkpoint,
                     const std::vector<train::CarriedState>& states);

/// Throws Failure naming the file where it is none, was cut off or changed, or holds other states.
Checkpoint readCheckpoint(const std::string& path, const std::vector<train::CarriedState>& states);

} // namespace candela::tool
