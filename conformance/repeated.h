#pragma once

#include <cstddef>

namespace candela::conformance {

/// How a case says that its runs on the same inputs differ: it found by itself that the device is
/// unsteady.
inline constexpr const char* kOtherBytes = "other bytes than in run 1 on the same inputs";

/// While it lives, tryOut in this process makes so many runs of each trial, all on one queue.
class Repeated {
public:
  explicit Repeated(size_t runs);
  ~Repeated();
  Repeated(const Repeated&) = delete;
  Repeated& operator=(const Repeated&) = delete;
};

} // namespace candela::conformance
