#include "simulator/func/bound_device.h"

#include "simulator/error.h"

namespace candela::npu {

BoundDevice::BoundDevice(const Configuration& configuration)
    : loader_(makeFunctionalDevice(configuration)) {}

Outcome BoundDevice::load(Binary binary) {
  regions_.clear();
  if (Outcome bad = loader_->load(std::move(binary))) return bad;
  constants_ = program().constants;
  regions_.resize(program().regions.size());
  for (size_t i = 0; i < regions_.size(); ++i)
    if (const Region& region = program().regions[i]; region.kind == RegionClass::kConstants)
      regions_[i] = std::span(constants_).first(region.bytes);
  return {};
}

Outcome BoundDevice::bind(uint32_t region, std::span<std::byte> memory) {
  if (Outcome bad = loader_->bind(region, memory)) return bad;
  regions_[region] = memory.first(program().regions[region].bytes);
  return {};
}

Outcome BoundDevice::checkBound() const {
  if (program().code.empty()) return error("no program is loaded");
  for (size_t i = 0; i < regions_.size(); ++i)
    if (!regions_[i].data() && program().regions[i].bytes)
      return error("region '{}' is not bound", program().regions[i].name);
  return {};
}

} // namespace candela::npu
