#pragma once

#include "conformance/mutants/fault.h"

/// How the catalogue is filled.
namespace candela::conformance::mutants {

class Catalogue {
public:
  using Run = std::function<cdl_code_t(Mutation&)>;
  /// A fault of this class in a subject; `variant` where the subject has several.
  Fault& add(std::string_view faultClass, std::string_view subject, Run run,
             const std::string& variant = "");
  Fault& fault(std::string_view name);
  std::vector<Fault> take() { return std::move(faults_); }

private:
  std::vector<Fault> faults_;
};

// What alters views, or which elements are written.
void addAddressFaults(Catalogue& catalogue);
// What alters one number of the result at a time.
void addValueFaults(Catalogue& catalogue);
// What several numbers become one by, and RESCALE and TABLE.
void addSumFaults(Catalogue& catalogue);
void addQuantizedFaults(Catalogue& catalogue);
// Steps of expressions that round: of ELEMENTWISE, and around the sums of other kinds.
void addExpressionFaults(Catalogue& catalogue);
// Scales, zero points and blocks of SCALED_MATMUL.
void addScaledFaults(Catalogue& catalogue);
// What holds for all primitives: backends that do nothing right, but look busy.
void addVacuousFaults(Catalogue& catalogue);
// Capability rows and executables.
void addObjectFaults(Catalogue& catalogue);
// Slots of memory, queues and errors.
void addSlotFaults(Catalogue& catalogue);
// Several devices, and several memory spaces.
void addDeviceFaults(Catalogue& catalogue);
// Queues that wait for each other, and that are cancelled.
void addAsyncFaults(Catalogue& catalogue);

} // namespace candela::conformance::mutants
