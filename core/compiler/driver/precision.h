#pragma once

#include <span>

#include "core/compiler/capabilities/target.h"
#include "core/compiler/graph/graph.h"

namespace candela::driver {

/// In which type products are computed.
enum class Precision : uint8_t {
  model, ///< the model's
  f16,   ///< f16 where it has f32
  bf16,
};

/// "f16" or "bf16"; "f32" or nothing: the model's. Failure: another word.
Result<Precision> parsePrecision(std::string_view text);

/// Gives the graph the types that it is computed in on `devices` (without the host, which has every
/// type), before optimize():
/// - A half that no device has becomes f32, where one has casts between the two: what is computed
///   in halves runs there all the same, and rounds less.
/// - `precision`: products of f32 become those of the half where a device computes in it; on
///   others their constant right sides alone are rounded to it, and read as such.
/// Failure: a weight that the half does not have, with its node.
Status setPrecision(graph::Graph& graph, std::span<const capabilities::Target* const> devices,
                    Precision precision);

} // namespace candela::driver
