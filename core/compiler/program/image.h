#pragma once

#include <functional>

#include "core/compiler/program/program.h"

namespace candela::program {

/// The flat image of cdl.h, in canonical record order: equal Programs give equal bytes. 8-byte
/// aligned, hashes filled in unless `hashed` is false: they read all payloads. The Program must be
/// one that verify() accepts.
Bytes toImage(const Program& program, bool hashed = true);

/// Where payloads of constants come from when an image is read: by hash. Null: constants get zero
/// payloads.
using PayloadSource = std::function<Result<Payload>(const cdl_constant_t& constant)>;

/// Checks structure (cdl_image_check), hash and meaning (verify). Failure: bad_model or
/// incompatible. What the records claim never allocates more than a small multiple of the image's
/// size.
Result<Program> fromImage(const Bytes& image, const PayloadSource& payloads);

} // namespace candela::program
