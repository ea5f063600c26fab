#pragma once

#include <nlohmann/json_fwd.hpp>

#include "conformance/report/report.h"

/// What a vendor hands out: the run in few words, bound to its report and to the plugin's file by
/// hashes.
namespace candela::conformance::report {

/// `reportFile` is the name that the report has beside the certificate, `text` what stands in it.
nlohmann::ordered_json certificateOf(const Report& report, const std::string& reportFile,
                                     const std::string& text);

/// What a certificate of this report speaks of, for people.
struct Scope {
  /// "acme 1.2 on ...; suite 0.1, size full, seed 1, tiers abi, memory; without onnx"
  std::string of;
  std::string result; ///< "3 of 900 cases failed; 890 passed, 7 unsupported"
};
Scope scopeOf(const Report& report);

struct Verification {
  /// What does not fit, one line each, the field first: a field and its hash, the hash of all, the
  /// report beside the certificate and every field that follows from it, and the plugin's file
  /// where one is given.
  std::vector<std::string> problems;
  Scope scope; ///< of the report; empty where it cannot be read
};
/// Failure: not_found or io, or bad_model for what is no certificate at all.
Result<Verification> verifyCertificate(const std::string& file, const std::string& pluginFile);

} // namespace candela::conformance::report
