#pragma once

#include "conformance/case.h"
#include "conformance/judge/primitive_bounds.h"

/// Instructions on the backend under test, with everything around them watched.
namespace candela::conformance {

/// The default memory space of a device, as a Program says it; the host's where it declares none.
program::Space defaultSpace(const capabilities::Target& target);

using Judge = std::function<Result<judge::Expectation>(const program::Program&,
                                                       std::span<const Tensor> inputs)>;

struct Trial {
  program::Program program; ///< verified; its first space is the device's default one
  /// What the INPUT, INOUT and STATE buffers hold, in order and whole, for run `salt`: other data
  /// for another salt.
  std::function<Result<std::vector<Tensor>>(uint64_t salt)> inputs;
  Judge judge = judge::primitiveBounds;
  /// Steps of an expression are tried wherever a row names their kind, also those that are no
  /// instruction of their own.
  bool trustsSteps = false;
};

/// Runs a trial three times on the port, by the interface that it has: two runs on different
/// inputs, then one on the first ones again. Every buffer lies between guard bands in memory of its
/// own; outputs are poisoned before, differently in each run; inputs and constants must be as they
/// were. An instruction that no row takes is unsupported (with the row's reason), one that a row
/// calls EMULATED is emulated; a refusal of what a row calls NATIVE is a failure, as is an answer
/// other than NATIVE of the executable. A device that calls itself deterministic gives equal bytes
/// for equal inputs. Right, but with bounds of more than a tenth of the magnitude on more than a
/// tenth of the elements: mistrusted.
CaseResult tryOut(const Trial& trial, Port& port);

/// The program breaks a rule that its image does not show: the device must refuse it, with
/// bad_model or refused, when it is compiled or at the latest when it runs.
CaseResult tryRefusal(const Trial& trial, Port& port);

} // namespace candela::conformance
