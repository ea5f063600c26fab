#pragma once

#include "tools/candela/support/console.h"

/// What a layer of a report computes.
namespace candela::tool {

/// Adds to each layer, by its name, `op`, `shape` ("3x3, 64->128, 56x56") and, where it multiplies
/// matrices, `products` {count, rows, terms, columns}, as `placement` (candela.placement/1) has
/// them. Of several nodes of one name the first that multiplies counts, else the first. A layer
/// whose name the placement has not has none of them.
void addShapes(Json& layers, const Json& placement);

} // namespace candela::tool
