#pragma once

#include "conformance/report/report.h"

namespace candela::conformance {

/// The two lists of a backend:
///
///     [[unsupported]]
///     cases = "primitives:pool/*"
///     reason = "there is no pooling unit"
///
///     [[xfail]]
///     cases = "primitives:unary/exp_f16:*"
///     reason = "flushes denormals; a new table is under way"
///     owner = "kernels@acme.example"
///     expires = "1.2"
///
/// An entry of `xfail` holds for suites older than `expires`. Cases are told by queries.
struct Expectations {
  std::string file; ///< empty: there are none
  std::vector<report::Waiver> entries;

  /// Failure: not_found, or bad_model with the file, line and key.
  static Result<Expectations> read(const std::string& file);
  static Result<Expectations> parse(const std::string& text, const std::string& file);

  /// Makes a failure that is expected an xfail. What was to fail or to be unsupported and passes
  /// has failed.
  void apply(CaseResult& result) const;
  /// Entries that have expired, or that stand for no case of the whole suite.
  std::vector<std::string> problems(const std::vector<std::string>& addresses) const;
};

/// libcandela_NAME.expectations.toml beside libcandela_NAME.so; empty when there is no such file.
std::string expectationsBeside(const std::string& pluginFile);

} // namespace candela::conformance
