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

} // namespace

OpenCl::OpenCl() : PrimitiveBackend("opencl_primitives", kVersion) {
  using cdl::Kind;
  describe("devices with OpenCL 1.2, instruction by instruction");
  option("device", "which one: its number, or a part of its name", "string", "");
  option("platform", "of which platform: its number, or a part of its name", "string", "");
  option("threads", "how many of the device's compute units work, where it can be divided; 0: all",
         "int", "0");
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

cdl::Status OpenCl::chooseDevice(uint32_t index) {
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
  return cdl::ok();
}

/// Leaves a part of the device where not all of its compute units shall work.
cdl::Status OpenCl::takeThreads() {
  const std::string text = options().get("threads");
  if (!isNumber(text))
    return cdl::error(CDL_INVALID_ARGUMENT, "threads=" + text + ": not a number from 0 to 99999");
  const cl_uint units = deviceValue<cl_uint>(device_, CL_DEVICE_MAX_COMPUTE_UNITS);
  const auto wanted = static_cast<cl_uint>(std::stoul(text));
  if (wanted == 0 || wanted >= units) return cdl::ok();
  const cl_device_partition_property how[] = {CL_DEVICE_PARTITION_BY_COUNTS,
                                              static_cast<cl_device_partition_property>(wanted),
                                              CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0};
  cl_device_id part = nullptr;
  const cl_int code = clCreateSubDevices(device_, how, 1, &part, nullptr);
  if (code != CL_SUCCESS)
    return cdl::error(CDL_INVALID_ARGUMENT,
                      cdl::text("threads=", wanted, ": '", nameOf(device_), "' has ", units,
                                " compute units and cannot be divided"),
                      code);
  part_ = SubDevice(part);
  device_ = part;
  return cdl::ok();
}

cdl::Status OpenCl::open(uint32_t index) {
  if (cdl::Status status = chooseDevice(index); !status.isOk()) return status;
  if (cdl::Status status = takeThreads(); !status.isOk()) return status;
  cl_int code = CL_SUCCESS;
  context_ = Context(clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &code));
  if (cdl::Status status = check(code, "clCreateContext"); !status.isOk()) return status;
  queue_ =
      CommandQueue(clCreateCommandQueue(context_.get(), device_, CL_QUEUE_PROFILING_ENABLE, &code));
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
