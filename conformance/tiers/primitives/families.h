#pragma once

#include "conformance/family.h"
#include "conformance/trial_builder.h"

/// The families of the tier `primitives`: each kind with every function and tuple of element types
/// that any profile or optional row has, whatever a backend claims.
namespace candela::conformance::tiers::primitives {

std::vector<Case> copyCases(const Selection& selection);
std::vector<Case> fillCases(const Selection& selection);
std::vector<Case> convertCases(const Selection& selection);
std::vector<Case> binaryCases(const Selection& selection);
std::vector<Case> gatherCases(const Selection& selection);
std::vector<Case> scatterCases(const Selection& selection);
std::vector<Case> reduceCases(const Selection& selection);
std::vector<Case> matmulCases(const Selection& selection);
/// Of the rows that profiles require, though their decomposition is primitives.
std::vector<Case> scaledMatmulCases(const Selection& selection);
std::vector<Case> rescaleCases(const Selection& selection);
std::vector<Case> tableCases(const Selection& selection);
/// The kinds with dims of their own inside of `for`.
std::vector<Case> roundCases(const Selection& selection);
/// The same kinds on views of all forms, in every place; and on what their own families leave out.
std::vector<Case> wiringCases(const Selection& selection);
/// What breaks a rule that no image check sees, of any kind.
std::vector<Case> refusedCases(const Selection& selection);
std::vector<Case> compareCases(const Selection& selection);
std::vector<Case> selectCases(const Selection& selection);
std::vector<Case> unaryCases(const Selection& selection);

/// Views of two operands and a result, and of one operand and a result.
const std::vector<std::string>& binaryViews();
const std::vector<std::string>& unaryViews();

/// "calm", "steps", "corners", "wide", "bits", "extremes".
random::Data dataNamed(std::string_view name);

} // namespace candela::conformance::tiers::primitives
