#include "simulator/timing/exact/ports.h"

#include <bit>

namespace candela::npu::exact {

Scratchpad::Scratchpad(const Configuration& configuration)
    : widthLog2_(std::countr_zero(static_cast<uint64_t>(configuration[key::kScratchpadBankWidth]))),
      banks_(configuration[key::kScratchpadBanks]) {}

uint64_t Scratchpad::banksOf(const PortRequest& request) const {
  if (request.from >= request.to) return 0;
  uint64_t banks = 0;
  const int64_t last = (request.address + request.to - 1) >> widthLog2_;
  for (int64_t word = (request.address + request.from) >> widthLog2_; word <= last; ++word)
    banks |= uint64_t{1} << (word & (banks_ - 1));
  return banks;
}

void Scratchpad::arbitrate(const std::vector<PortRequest*>& ports) {
  uint64_t taken = 0;
  bool isDenied = false;
  size_t next = first_;
  for (size_t i = 0; i < ports.size(); ++i) {
    const size_t at = (first_ + i) % ports.size();
    PortRequest& port = *ports[at];
    port.isGranted = false;
    if (!port.isValid) continue;
    const uint64_t banks = banksOf(port);
    if ((banks & taken) == 0) {
      port.isGranted = true;
      taken |= banks;
    } else if (!isDenied) {
      isDenied = true;
      next = at;
    }
  }
  first_ = next;
}

} // namespace candela::npu::exact
