#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>

#include "core/conform/case.h"

namespace candela::conform {

struct Summary {
  uint64_t total = 0, passed = 0, rawPassed = 0, failed = 0, unsupported = 0, xfail = 0;
  std::map<std::string, uint64_t> unsupportedByClass; ///< by reasonClass()
  Work work;
  double milliseconds = 0; ///< summed over the cases
};
Summary summarise(const std::vector<CaseResult>& results);

/// total, passed, raw_passed, failed, unsupported (with the class of each reason, and how many are of each), xfail,
/// native, as the contract of the tool says.
nlohmann::ordered_json resultsJson(const std::vector<CaseResult>& results);

/// JUnit XML, one test suite per tier; unsupported cases count as skipped.
std::string junitXml(const std::vector<CaseResult>& results, const std::string& backend);

/// Whether a case's name matches a glob ("onnx:test_add*"); without a tier in front, any tier.
bool matchesQuery(const std::string& name, const std::string& query);

/// Shard K of N, both from "K/N" with 1 <= K <= N. Failure: invalid_argument.
struct Shard {
  uint64_t index = 1, count = 1;
  bool holds(size_t i) const { return i % count == index - 1; }
};
Result<Shard> parseShard(const std::string& given);

} // namespace candela::conform
