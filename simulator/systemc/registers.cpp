#include "simulator/systemc/registers.h"

#include <algorithm>

#include "simulator/error.h"

namespace candela::npu {

static_assert(kPmuOffset == 0x400, "Registers ends where the PMU begins");

std::vector<std::pair<uint32_t, uint32_t>> registersOf(const Binary& binary,
                                                       const Placement& placement) {
  std::vector<std::pair<uint32_t, uint32_t>> writes;
  const auto add = [&](uint32_t low, uint32_t high, uint64_t value) {
    writes.emplace_back(low, static_cast<uint32_t>(value));
    writes.emplace_back(high, static_cast<uint32_t>(value >> 32));
  };
  for (uint32_t i = 0; i < binary.regions.size(); ++i) {
    const auto at = [i](uint32_t first) { return first + 4 * i; };
    add(at(registerOffset("REGION_BASE_LO")), at(registerOffset("REGION_BASE_HI")),
        placement.bases[i]);
    writes.emplace_back(at(registerOffset("REGION_BYTES")),
                        static_cast<uint32_t>(binary.regions[i].bytes));
    writes.emplace_back(at(registerOffset("REGION_FLAGS")),
                        static_cast<uint32_t>(binary.regions[i].kind) << 1);
  }
  add(registerOffset("PROGRAM_LO"), registerOffset("PROGRAM_HI"), placement.program);
  writes.emplace_back(registerOffset("PROGRAM_WORDS"), static_cast<uint32_t>(binary.code.size()));
  return writes;
}

bool Registers::write(uint32_t offset, uint32_t value) {
  const auto known =
      std::find_if(std::begin(kRegisters), std::end(kRegisters), [&](const RegisterInfo& r) {
        return offset % 4 == 0 && offset >= r.offset && offset < r.offset + 4 * r.count;
      });
  if (known == std::end(kRegisters)) return offset >= kPmuOffset;
  if (known->isWritable) values_[offset / 4] = value;
  return true;
}

Result<std::vector<Registers::Window>> Registers::regions() const {
  std::vector<Window> windows;
  for (uint32_t i = 0; i < kMaxRegions; ++i) {
    const auto at = [i](uint32_t first) { return first + 4 * i; };
    const uint32_t flags = (*this)[at(registerOffset("REGION_FLAGS"))], kind = flags >> 1 & 7;
    if (kind >= std::size(kRegionClassNames))
      return error("REGION_FLAGS[{}]: class {}, there are {}", i, kind,
                   std::size(kRegionClassNames));
    Window window;
    window.base = pair(at(registerOffset("REGION_BASE_LO")), at(registerOffset("REGION_BASE_HI")));
    window.region = {fmt::format("{}", i), static_cast<RegionClass>(kind),
                     (*this)[at(registerOffset("REGION_BYTES"))]};
    for (const Window& other : windows)
      if (window.base < other.base + other.region.bytes &&
          other.base < window.base + window.region.bytes)
        return error("REGION_BASE[{}]: the region meets region {}", i, other.region.name);
    if (window.base + window.region.bytes < window.base)
      return error("REGION_BASE[{}]: the region ends above 2^64", i);
    windows.push_back(std::move(window));
  }
  while (!windows.empty() && windows.back().region.bytes == 0) windows.pop_back();
  return windows;
}

} // namespace candela::npu
