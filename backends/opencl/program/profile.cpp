#include "profile.hpp"

namespace program {

bool Profile::canRun(const Profile& other) const {
  constexpr int64_t kMostOfItem = 64; // results: what registers hold
  const int64_t bytes = 2 * other.tileDepth * (other.tileResults + 1) * int64_t{sizeof(float)};
  return bytes <= localBytes && other.groupItems <= mostItems &&
         other.tileResults * other.tileResults <= kMostOfItem * other.groupItems;
}

Profile profileOf(const OpenCl& device, const std::string& style) {
  Profile profile;
  const auto type = deviceValue<cl_device_type>(device.id(), CL_DEVICE_TYPE);
  const bool isGpu = style == "auto" ? (type & CL_DEVICE_TYPE_CPU) == 0 : style == "gpu";
  profile.style = isGpu ? Profile::Style::gpu : Profile::Style::cpu;
  profile.localBytes =
      static_cast<int64_t>(deviceValue<cl_ulong>(device.id(), CL_DEVICE_LOCAL_MEM_SIZE));
  profile.mostItems =
      static_cast<int64_t>(deviceValue<size_t>(device.id(), CL_DEVICE_MAX_WORK_GROUP_SIZE));
  // A small device gets small groups: 8 by 8 work-items of 4 by 4 results.
  Profile small = profile;
  small.groupItems = 64;
  small.tileResults = 32;
  small.tileDepth = 8;
  return profile.canRun(profile) ? profile : small;
}

} // namespace program
