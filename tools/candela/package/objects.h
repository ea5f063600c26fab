#pragma once

#include "candela/cdl_object.h"
#include "core/support/tensor.h"

namespace candela::tool {

/// The members of what a backend emitted; they share its bytes.
struct ObjectFiles {
  Bytes code, weightsObject, weights;
  cdl_object_facts_t facts{};
};

/// Reads an archive of cdl_object.h. Failure: bad_model, naming the member that is missing or what
/// contradicts the facts.
Result<ObjectFiles> readObjects(const Bytes& archive);

} // namespace candela::tool
