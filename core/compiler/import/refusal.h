#pragma once

#include <utility>

#include "core/support/status.h"

namespace candela::import {

/// Thrown where a file cannot be read, or an operator of it has no form, by the rooms of formats;
/// whoever walks the file reports it with the operator's name.
struct Refusal {
  Status status;
};

/// What a file may say, but is not supported.
template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw Refusal{failure(Code::unsupported, format, std::forward<Args>(args)...)};
}
/// What contradicts itself, or is no file of this kind.
template <typename... Args>
[[noreturn]] void reject(fmt::format_string<Args...> format, Args&&... args) {
  throw Refusal{badModel(format, std::forward<Args>(args)...)};
}

} // namespace candela::import
