#pragma once

#include <array>

#include "core/support/tensor.h"

namespace candela {

/// SHA-256.
using Hash = std::array<uint8_t, 32>;

Hash sha256(const void* data, uint64_t size);

/// Whether an image of a Program has the hash that its header says: that of itself with this field
/// zero. Failure: bad_model with both.
Status checkImageHash(const Bytes& image);

/// 64 lower-case hexadecimal digits.
std::string hashText(const Hash& hash);

} // namespace candela
