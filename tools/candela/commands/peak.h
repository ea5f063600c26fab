#pragma once

#include <string>

namespace candela::tool {

/// What some threads of this machine compute at most, in GFLOP/s (a multiplication and an addition
/// are two), measured with nothing but registers and the widest vectors or tiles that the machine
/// has.
struct Peak {
  double f32 = 0, int8 = 0;      ///< int8: u8 x s8 into i32
  std::string f32With, int8With; ///< "avx512 fma"
};

/// Takes a few hundredths of a second.
Peak measurePeak(int threads);

} // namespace candela::tool
