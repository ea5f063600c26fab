#pragma once

#include <span>

#include "core/support/tensor.h"

namespace candela {

/// The elements of `x` in another order of dims: dim d of the result is dim perm[d] of x. `perm` is
/// a permutation of all dims. Packed types too. Failure: out_of_memory.
Result<Tensor> transposed(const Tensor& x, std::span<const int64_t> perm);

} // namespace candela
