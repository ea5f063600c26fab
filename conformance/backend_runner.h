#pragma once

#include "conformance/case.h"
#include "core/compiler/import/script.h"

namespace candela::conformance {

struct RunAnswer {
  std::vector<runtime::control_flow::Value> outputs; ///< in the model's order
  Work work;
};
/// Compiles a model for what is judged and runs it on these inputs (the flow's order).
/// Code::unsupported: the backend, or this version, does not have what the graph needs.
using RunCase = std::function<Result<RunAnswer>(import::Script,
                                                const std::vector<runtime::control_flow::Value>&)>;

/// Runs models on a port, which must outlive it. toPrimitives: every op is lowered to the 13
/// primitives first; the reference ignores it.
RunCase backendRunner(Port& port, bool toPrimitives);

} // namespace candela::conformance
