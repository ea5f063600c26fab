#pragma once

#include "core/compiler/import/term.h"

namespace candela::import {

/// x in another type, which may be a storage type.
Term convert(const Term& x, Elem to, bool saturate);

/// A scale or zero point in a shape that broadcasts to tensors of this rank: a vector lies along
/// the axis.
Term along(const Term& p, int64_t axis, int64_t rank);

/// Scales or zero points of blocks along an axis, each as often as its block has elements: `dim` in
/// all.
Term inBlocks(const Term& p, int64_t axis, int64_t block, int64_t dim);

/// Unsigned numbers of 2, 4 or 8 bits that lie packed along the last dim of bytes, the lowest bits
/// first, in bytes of their own.
Term unpackedBits(const Term& packed, int64_t bits);

/// (x - zero) * scale in the type of `scale`; zero and scale broadcast to x, zero may be null.
Term dequantizeBy(const Term& x, const Term& scale, const Term* zero);

/// The quotient plus zero, in an integer type of up to 16 bits, rounded to the nearest and clamped,
/// or in a storage float.
Term quantizeBy(const Term& quotient, const Term* zero, Elem to, bool saturate);

} // namespace candela::import
