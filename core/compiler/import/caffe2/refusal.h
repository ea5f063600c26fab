#pragma once

#include "core/support/status.h"

namespace candela::import::caffe2 {

/// Thrown where an operator has no form; whoever walks the net reports it with the operator's name.
struct Refusal {
  Status status;
};

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw Refusal{failure(Code::unsupported, format, std::forward<Args>(args)...)};
}
template <typename... Args>
[[noreturn]] void reject(fmt::format_string<Args...> format, Args&&... args) {
  throw Refusal{badModel(format, std::forward<Args>(args)...)};
}

} // namespace candela::import::caffe2
