#pragma once

#include "core/support/status.h"

namespace candela::import::stablehlo {

/// Thrown where a text cannot be read or an operation has no form; parseModel() reports it.
struct Refusal {
  Status status;
};

/// What a file may say, but is not supported.
template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw Refusal{failure(Code::unsupported, format, std::forward<Args>(args)...)};
}
/// What contradicts itself, or is no text of this kind.
template <typename... Args>
[[noreturn]] void reject(fmt::format_string<Args...> format, Args&&... args) {
  throw Refusal{badModel(format, std::forward<Args>(args)...)};
}

} // namespace candela::import::stablehlo
