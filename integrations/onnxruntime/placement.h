/// Where the nodes of a compiled model run, by Candela's report of it.
#ifndef CANDELA_INTEGRATIONS_ONNXRUNTIME_PLACEMENT_H
#define CANDELA_INTEGRATIONS_ONNXRUNTIME_PLACEMENT_H

#include <map>
#include <string>

namespace candela::ort {

/// One node of the imported model, which may have become several instructions or none.
struct Placed {
  bool isOnBackend = false; ///< any of it, natively or by emulation
  bool isOnHost = false;    ///< any of it, since no backend takes that
  std::string why;          ///< of what is on the host
};

struct Placement {
  std::map<std::string, Placed> nodes; ///< by name; a node that another one absorbed is missing
  bool usesBackend = false;            ///< whether anything at all runs on one, nested graphs too
};

/// Reads what candela_report_json says. What waits for a run, or is a step between compiled parts
/// as a Loop is, counts as neither. Throws std::exception where that is no such report.
Placement placementOf(const std::string& report);

} // namespace candela::ort

#endif
