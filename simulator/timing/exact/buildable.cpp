#include "simulator/timing/exact/buildable.h"

#include <algorithm>

#include "simulator/error.h"

namespace candela::npu {
namespace {

/// Bytes of the widest port of the scratchpad.
int64_t portBytes(const Configuration& c) {
  const int64_t value = c.hasInt16() ? 2 : 1;
  const int64_t array = std::max<int64_t>(c.rows(), c.columns()) * value;
  const int64_t lanes = std::min<int64_t>(c[key::kRequantLanes], c.columns()) * value;
  return std::max({array, lanes, c[key::kScratchpadBankWidth]});
}

} // namespace

Outcome checkBuildable(const Configuration& c) {
  const int64_t banks = c[key::kScratchpadBanks], width = c[key::kScratchpadBankWidth];
  if (portBytes(c) > (banks - 1) * width + 1)
    return error("'{}': scratchpad.banks is {}, of {} bytes: its widest port is of {} bytes at any "
                 "address, whose words have to lie in different banks",
                 c.name, banks, width, portBytes(c));
  if (c.scratchpadBytes() < 2 * banks * width)
    return error("'{}': scratchpad.bytes is {}: {} banks of {} bytes have less than two rows",
                 c.name, c.scratchpadBytes(), banks, width);
  if (const int64_t parts = c[key::kAccumulatorBanks]; c.accumulatorRows() < 2 * parts)
    return error("'{}': accumulator.banks is {}: {} rows are less than two in each", c.name, parts,
                 c.accumulatorRows());
  return {};
}

} // namespace candela::npu
