#pragma once

#include <cstddef>

namespace candela::conform {

/// While it lives, tryOut in this process makes so many runs of each trial, all on one queue.
class Repeated {
public:
  explicit Repeated(size_t runs);
  ~Repeated();
  Repeated(const Repeated&) = delete;
  Repeated& operator=(const Repeated&) = delete;
};

} // namespace candela::conform
