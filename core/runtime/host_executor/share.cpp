#include "core/runtime/host_executor/share.h"

#include <utility>

namespace candela::runtime::host_executor {

bool hasOwnPlaces(const Operand& result) {
  if (isPackedElem(result.elem)) return false;
  Scratch<std::pair<int64_t, int64_t>> steps;
  for (int d = 0; d < result.rank; ++d)
    if (result.dims[d] > 1) steps.emplace_back(std::abs(result.strides[d]), result.dims[d]);
  std::sort(steps.begin(), steps.end());
  int64_t reach = 0; // of all that the smaller strides number
  for (const auto& [stride, count] : steps) {
    if (stride <= reach) return false;
    reach += stride * (count - 1);
  }
  return true;
}

} // namespace candela::runtime::host_executor
