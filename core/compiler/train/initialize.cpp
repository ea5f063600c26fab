#include <cmath>

#include "core/compiler/train/parameters.h"
#include "core/support/float_bits.h"

namespace candela::train {
namespace {

constexpr double kEmbeddingSpread = 0.05;
constexpr double kSlope = 0.25;

/// What every element is; nullopt where they are drawn.
std::optional<double> fixedValue(Role role) {
  switch (role) {
  case Role::weight:
  case Role::embedding: return std::nullopt;
  case Role::bias:
  case Role::runningMean: return 0;
  case Role::scale:
  case Role::runningVariance: return 1;
  case Role::slope: return kSlope;
  }
  return 0;
}

} // namespace

Result<Tensor> initialValue(const Parameter& parameter, uint64_t seed) {
  CDL_ASSIGN(Tensor tensor, Tensor::zeros(Elem::f32_, parameter.value.dims));
  const std::optional<double> fixed = fixedValue(parameter.role);
  const double spread = parameter.role == Role::embedding
                            ? kEmbeddingSpread
                            : std::sqrt(6.0 / static_cast<double>(parameter.fanIn));
  float* values = tensor.mutableAs<float>();
  for (int64_t i = 0; i < tensor.count(); ++i) {
    const uint64_t bits = splitmix64(seed + static_cast<uint64_t>(i)) >> 11;
    const double unit = static_cast<double>(bits) * 0x1p-52 - 1; // in [-1, 1)
    values[i] = static_cast<float>(fixed.value_or(unit * spread));
  }
  return tensor;
}

} // namespace candela::train
