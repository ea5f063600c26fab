#pragma once

#include "conformance/execute.h"
#include "conformance/random/random_ops.h"

namespace candela::conformance {

/// What may follow a product in its pass. The names of chains: "chain.conv2d.pool2d.table".
inline constexpr const char* kChains[] = {
    "chain.conv2d.table",         "chain.conv2d.pool2d",        "chain.conv2d.pool2d.table",
    "chain.conv2d.rescale",       "chain.conv2d.rescale.table", "chain.matmul.table",
    "chain.matmul.rescale.table",
};

/// A product that ends in `elem` (i8, u8; i16 of activations of 16 bits), with what the name of the
/// chain says behind it, each alone reading what stands before it. Windows, scales and contents at
/// random; `space`: the device's default one.
Result<Trial> chainOf(const std::string& name, Elem elem, const program::Space& space,
                      random::Random& random);

} // namespace candela::conformance
