#pragma once

#include "conformance/case.h"
#include "conformance/mutants/fault.h"

/// The suite on its own catalogue of faulty backends.
namespace candela::conformance::mutants {

struct Verdict {
  const Fault* fault = nullptr;
  bool killed = false;
  std::string tier = {};    ///< that killed it
  std::string address = {}; ///< of the case
  std::string reason = {};  ///< what the case said
  Size size = Size::full;   ///< of the listing that it stands in
  double milliseconds = 0;
  /// By the tier that its fault belongs to, and by `quick` where its class wants that.
  bool isProper() const {
    return killed && tier == fault->tier && (size == Size::quick || !fault->faultClass->isQuick);
  }
};

struct MutantOptions {
  int jobs = 1;
  double timeLimitSeconds = 600; ///< of one mutant, all its cases together
  std::string onnxData = {};
  std::string query = {};              ///< of names; empty: all
  std::vector<std::string> tiers = {}; ///< that try; empty: all
  size_t every = 1;                    ///< only one of so many neighbours in the catalogue
};

/// Runs every mutant until a case fails that soft passes: first the cases of its tier that bear its
/// subject's name, then the others of that tier, of size `quick` and then `full`; then those of the
/// other tiers. `done` is called after each mutant. Verdicts come in the order of the catalogue.
/// The calling process must have one thread.
Result<std::vector<Verdict>>
runMutants(const MutantOptions& options,
           const std::function<void(const Verdict&, size_t finished)>& done = {});

/// The pairs of the matrix that apply and have no fault, and the faults of pairs that do not:
/// "gather.half_up".
std::vector<std::string> matrixGaps();
/// The kill matrix as text in Markdown: a line for each class, a column for each subject.
std::string matrixPage(const std::vector<Verdict>& verdicts);

} // namespace candela::conformance::mutants
