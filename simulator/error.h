#pragma once

#include <fmt/format.h>

#include <utility>

#include "simulator/result.h"

namespace candela::npu {

/// An Error of a format and its arguments. For what implements the simulator: result.h, which is
/// installed, needs no fmt.
template <typename... Args> Error error(fmt::format_string<Args...> format, Args&&... args) {
  return {fmt::format(format, std::forward<Args>(args)...)};
}

} // namespace candela::npu
