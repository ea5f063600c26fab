#pragma once

#include <nlohmann/json_fwd.hpp>

#include "conformance/report/report.h"

/// The record of one case, as reports and journals have it.
namespace candela::conformance::report {

nlohmann::ordered_json caseJson(const CaseResult& result);
/// Failure: bad_model with the field that is not there or not of its type.
Result<CaseResult> parseCase(const nlohmann::ordered_json& json);

} // namespace candela::conformance::report
