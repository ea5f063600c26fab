// The devices, and what the backend of primitives says of itself.
#include "opencl.hpp"

namespace {

constexpr cdl::Kind kPrimitives[] = {cdl::Kind::Copy,   cdl::Kind::Fill,    cdl::Kind::Convert,
                                     cdl::Kind::Binary, cdl::Kind::Compare, cdl::Kind::Select,
                                     cdl::Kind::Gather, cdl::Kind::Scatter, cdl::Kind::Reduce,
                                     cdl::Kind::MatMul, cdl::Kind::Unary,   cdl::Kind::Rescale,
                                     cdl::Kind::Table};

std::string platformText(cl_platform_id platform, cl_platform_info what) {
  char text[512] = "";
  clGetPlatformInfo(platform, what, sizeof text - 1, text, nullptr);
  return text;
}
std::string nameOf(cl_device_id device) {
  char text[512] = "";
  clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof text - 1, text, nullptr);
  return text;
}

bool isNumber(const std::string& text) {
  return !text.empty() && text.size() < 6 &&
         text.find_first_not_of("0123456789") == std::string::npos;
}

/// Does an option choose entry `index` of this name? By its number, or by a part of the name; an
/// empty one all.
bool chooses(const std::string& option, size_t index, const std::string& name) {
  return isNumber(option) ? std::stoul(option) == index : name.find(option) != std::string::npos;
}

/// The devices of the platforms that the option chooses.
std::vector<cl_device_id> devicesOf(const std::string& platform) {
  cl_platform_id platforms[32];
  cl_uint count = 0;
  std::vector<cl_device_id> all;
  // no driver is an error there
  if (clGetPlatformIDs(32, platforms, &count) != CL_SUCCESS) return all;
  for (cl_uint p = 0; p < std::min(count, 32u); ++p) {
    if (!chooses(platform, p, platformText(platforms[p], CL_PLATFORM_NAME))) continue;
    cl_device_id devices[32];
    cl_uint found = 0;
    if (clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, 32, devices, &found) == CL_SUCCESS)
      all.insert(all.end(), devices, devices + std::min(found, 32u));
  }
  return all;
}

std::string namesOf(const std::vector<cl_device_id>& devices) {
  std::string names;
  for (size_t i = 0; i < devices.size(); ++i)
    names += cdl::text(i ? ", " : "", i, " '", nameOf(devices[i]), "'");
  return names.empty() ? "none" : names;
}

template <class T> T deviceValue(cl_device_id device, cl_device_info what) {
  T value{};
  clGetDeviceInfo(device, what, sizeof value, &value, nullptr);
  return value;
}

} // namespace

OpenCl::OpenCl() : PrimitiveBackend("opencl", kVersion) {
  using cdl::Kind;
  describe("devices with OpenCL 1.2, instruction by instruction");
  option("device", "which one: its number, or a part of its name", "string", "");
  option("platform", "of which platform: its number, or a part of its name", "string", "");
  option("rung",
         "b0: memory alone; b1: the primitives; b2: convolutions, pools and expressions too",
         "b0|b1|b2", "b2");
  claim(cdl::Profile::FP32); // BASE comes with it
  claim(cdl::Profile::INT8);
  for (Kind kind : kPrimitives)
    // which wants its rows contiguous
    if (kind != Kind::MatMul) operandClass(kind, CDL_CLASS_AFFINE);
}

uint32_t OpenCl::deviceCount() { return static_cast<uint32_t>(devicesOf("").size()); }

cdl::Status OpenCl::open(uint32_t index) {
  const std::string platform = options().get("platform"), wanted = options().get("device");
  const std::vector<cl_device_id> devices = devicesOf(platform);
  size_t at = index;
  if (!platform.empty() || !wanted.empty())
    for (at = 0; at < devices.size() && !chooses(wanted, at, nameOf(devices[at])); ++at) {}
  if (at >= devices.size())
    return cdl::error(CDL_INVALID_ARGUMENT,
                      cdl::text("no OpenCL device for platform='", platform, "' device='", wanted,
                                "'; there are: ", namesOf(devicesOf(""))));
  device_ = devices[at];
  nameDevice(nameOf(device_));
  if (!deviceValue<cl_bool>(device_, CL_DEVICE_COMPILER_AVAILABLE) ||
      !deviceValue<cl_bool>(device_, CL_DEVICE_ENDIAN_LITTLE))
    return cdl::unsupported("'" + nameOf(device_) + "' has no compiler, or is not little-endian");

  cl_int code = CL_SUCCESS;
  context_ = Context(clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &code));
  if (cdl::Status status = check(code, "clCreateContext"); !status.isOk()) return status;
  queue_ = CommandQueue(clCreateCommandQueue(context_.get(), device_, 0, &code));
  if (cdl::Status status = check(code, "clCreateCommandQueue"); !status.isOk()) return status;

  const bool keepsDenormals =
      deviceValue<cl_device_fp_config>(device_, CL_DEVICE_SINGLE_FP_CONFIG) & CL_FP_DENORM;
  deviceFlags(CDL_DEVICE_DETERMINISTIC | (keepsDenormals ? 0 : CDL_DEVICE_FTZ_F32));
  space("global", 0, deviceValue<cl_ulong>(device_, CL_DEVICE_GLOBAL_MEM_SIZE),
        std::max(64u, deviceValue<cl_uint>(device_, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8));
  if (options().get("rung") == "b0")
    for (const cdl::Kind kind : kPrimitives) support(kind, cdl::Support::EMULATED);
  if (options().get("rung") == "b2") claimOptional();
  return cdl::ok();
}
