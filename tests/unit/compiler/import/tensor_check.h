#pragma once

#include <cmath>
#include <string>

#include "core/reference/reference.h"

namespace candela::test {

/// Empty when `got` is `want`: types and dims equal, integers equal, floats within rtol 1e-3 and
/// atol 1e-7 as ONNX's own backend tests ask; infinities and NaNs where they are expected.
inline std::string difference(const Tensor& got, const Tensor& want) {
  if (got.typeText() != want.typeText())
    return fmt::format("got {}, expected {}", got.typeText(), want.typeText());
  const auto a = reference::fromTensor(got), b = reference::fromTensor(want);
  if (!a || !b) return "not a tensor of numbers";
  for (int64_t i = 0; i < want.count(); ++i) {
    if (!isFloat(want.elem)) {
      if (a->whole[i] != b->whole[i])
        return fmt::format("element {} is {}, expected {}", i, static_cast<int64_t>(a->whole[i]),
                           static_cast<int64_t>(b->whole[i]));
      continue;
    }
    const double x = a->real[i], y = b->real[i];
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    if (!(std::abs(x - y) <= 1e-7 + 1e-3 * std::abs(y)))
      return fmt::format("element {} is {}, expected {}", i, x, y);
  }
  return "";
}

} // namespace candela::test
