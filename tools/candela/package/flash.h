#pragma once

#include "core/support/tensor.h"

namespace candela::tool {

/// What an ELF object takes of the memory of a program that it is linked into, before the linker
/// drops or joins anything: its sections that are loaded, each from where it is aligned to.
/// Failure: bad_model, of what is no ELF object.
Result<uint64_t> loadedBytes(const Bytes& object);

} // namespace candela::tool
