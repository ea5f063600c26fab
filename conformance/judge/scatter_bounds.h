#pragma once

#include "conformance/judge/primitive_bounds.h"

namespace candela::conformance::judge {

/// Of one SCATTER: the oracle's answer, which takes the updates in order. Places that no index
/// names keep their bits; where several updates are set in one place it holds the bits of any of
/// them.
Result<Expectation> scatterBounds(const program::Program& program, std::span<const Tensor> inputs);

} // namespace candela::conformance::judge
