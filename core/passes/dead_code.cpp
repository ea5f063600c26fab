#include "core/passes/rewrite.h"

namespace candela::passes {

Result<int> deadCode(graph::Graph& graph) { return graph.eraseDead(); }

} // namespace candela::passes
