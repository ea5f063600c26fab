#pragma once

#include "tools/candela/debug/stepper.h"
#include "tools/candela/run/run.h"

/// The parts of `candela debug` that a backend may die of, each in processes of its own.
namespace candela::tool {

/// What is debugged, and on what.
struct Hunt {
  ModelOptions model;
  std::vector<BackendSpec> backends;                ///< those of --backend that are plugins
  Question question;                                ///< but for the backend
  std::map<std::string, BackendSpec> byPlugin = {}; ///< once they were opened, by their own names
  /// Of a step that runs on this backend.
  Question questionFor(const std::string& plugin) const;
};

/// The model as it was compiled for the backends. What they did not compile, because they died of
/// it, is what would have been compiled.
struct Compiled {
  runtime::bundle::Bundle bundle;
  Json placement;
  double compileMs = 0;
  std::optional<Finding> death; ///< while it was compiled
};
/// Throws Failure when there is nothing to run. Names the backends in `hunt`.
Compiled compileIn(Hunt& hunt, const std::vector<sdk::Port>& inputPorts);

/// Instruction by instruction: what was found about each, in order; the last one may have ended the
/// process.
std::vector<Finding> stepIn(const Hunt& hunt, Stepper& stepper, bool all, const std::string& name);

/// The model as a whole, as often as the question says. A run may take as long as all steps
/// together took, and more.
struct WholeRun {
  Finding finding;       ///< none, failed, unstable, wrong, died or late
  double difference = 0; ///< of the first run from the steps, over the largest value of the output
};
WholeRun runWhole(const Hunt& hunt, const runtime::bundle::Bundle& bundle,
                  const std::vector<Tensor>& inputs, const std::vector<Tensor>& steps,
                  double stepSeconds);

} // namespace candela::tool
