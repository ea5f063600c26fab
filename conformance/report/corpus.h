#pragma once

#include "conformance/suite.h"

/// What suite this is.
namespace candela::conformance::report {

/// Goes up where a case is added, or asks something else than it did.
struct SuiteVersion {
  unsigned major = 0, minor = 0;
  auto operator<=>(const SuiteVersion&) const = default;
  std::string text() const { return fmt::format("{}.{}", major, minor); }
};
inline constexpr SuiteVersion kSuiteVersion{0, 5};
/// "1.4". Failure: invalid_argument.
Result<SuiteVersion> parseSuiteVersion(const std::string& text);

struct Corpus {
  std::vector<std::string> addresses; ///< of nightly, tier by tier
  std::string hash;                   ///< over the addresses and the files that the onnx tier reads
  /// Tiers whose data is not on this machine, and why not.
  std::vector<std::pair<std::string, std::string>> absent;
};
/// "1013 <hash>": how many cases the size has, and a hash over their addresses, of the tiers that
/// need no data of others: what a version of the suite stands for.
Result<std::string> casesOf(Size size);
/// The whole suite, of the first seed whatever the selection's is.
Result<Corpus> wholeCorpus(const Selection& selection);

} // namespace candela::conformance::report
