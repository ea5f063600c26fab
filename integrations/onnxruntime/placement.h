/// Where the nodes of a compiled model run, by Candela's report of it.
#ifndef CANDELA_INTEGRATIONS_ONNXRUNTIME_PLACEMENT_H
#define CANDELA_INTEGRATIONS_ONNXRUNTIME_PLACEMENT_H

#include <map>
#include <string>

namespace candela::ort {

/// What is computed of a node in one place.
struct Work {
  double macs = 0;     ///< multiply-accumulates
  double elements = 0; ///< of results

  bool operator>(const Work& other) const {
    return macs != other.macs ? macs > other.macs : elements > other.elements;
  }
};

/// One node of the imported model, which may have become several instructions or none.
struct Placed {
  Work onBackend;  ///< natively or by emulation
  Work onHost;     ///< since no backend takes it
  std::string why; ///< of what is on the host

  /// Whether the host would do most of it.
  bool isHosts() const { return onHost > onBackend; }
};

struct Placement {
  std::map<std::string, Placed> nodes; ///< by name; a node that another one absorbed is missing
  bool usesBackend = false;            ///< whether anything at all runs on one, nested graphs too
};

/// Reads what candela_report_json says. What waits for a run, is a step between compiled parts as a
/// Loop is, or is no work as a Reshape that only renames, counts as neither. Throws std::exception
/// where that is no such report.
Placement placementOf(const std::string& report);

} // namespace candela::ort

#endif
