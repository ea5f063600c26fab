#pragma once

#include "conformance/report/report.h"

namespace candela::conformance::report {

/// The reports of all shards of one run, as the report of that run. Failure: invalid_argument,
/// naming a shard that is missing or there twice, or what differs between two of them.
Result<Report> mergeReports(std::vector<Report> shards, const std::vector<std::string>& files);

} // namespace candela::conformance::report
