// Programs: built from text, or taken as binaries from the host's cache.
#include "opencl.hpp"

uint64_t hashOf(const void* data, size_t bytes) { // FNV-1a
  uint64_t hash = 14695981039346656037u;
  for (size_t i = 0; i < bytes; ++i)
    hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 1099511628211u;
  return hash;
}

std::string OpenCl::deviceText(cl_device_info what) const {
  char text[512] = "";
  clGetDeviceInfo(device_, what, sizeof text - 1, text, nullptr);
  return text;
}

bool OpenCl::keepsBinaries() const {
  char name[128] = "";
  clGetPlatformInfo(deviceValue<cl_platform_id>(device_, CL_DEVICE_PLATFORM), CL_PLATFORM_NAME,
                    sizeof name - 1, name, nullptr);
  // PoCL compiles all kernels once more, for groups of any size, before it hands out a binary.
  return std::strcmp(name, "Portable Computing Language") == 0;
}

// What is cached: a checksum and the data. Drivers believe binaries: PoCL reads beyond the end of a
// short one.

std::string OpenCl::keyOf(const std::string& what) const {
  return cdl::text(name(), " ", version(), " ", what, " on ", deviceText(CL_DEVICE_NAME), " ",
                   deviceText(CL_DEVICE_VERSION), " ", deviceText(CL_DRIVER_VERSION));
}

std::string OpenCl::cached(const std::string& what) const {
  const std::string key = keyOf(what);
  uint64_t size = 0;
  uint64_t sum = 0;
  const void* stored =
      host().cache_get ? host().cache_get(host().context, key.data(), key.size(), &size) : nullptr;
  if (!stored || size <= sizeof sum) return "";
  std::memcpy(&sum, stored, sizeof sum);
  const std::string data(static_cast<const char*>(stored) + sizeof sum, size - sizeof sum);
  return sum == hashOf(data.data(), data.size()) ? data : "";
}

void OpenCl::putIntoCache(const std::string& what, const std::string& data) const {
  if (!host().cache_put || data.empty()) return;
  const std::string key = keyOf(what);
  const uint64_t sum = hashOf(data.data(), data.size());
  const std::string stored = std::string(reinterpret_cast<const char*>(&sum), sizeof sum) + data;
  host().cache_put(host().context, key.data(), key.size(), stored.data(), stored.size());
}

Program OpenCl::programOfCache(const std::string& what, const std::string& options) {
  const std::string binary = cached(what);
  if (binary.empty()) return Program();
  const size_t bytes = binary.size();
  const auto* data = reinterpret_cast<const unsigned char*>(binary.data());
  cl_int code = CL_SUCCESS;
  Program found(
      clCreateProgramWithBinary(context_.get(), 1, &device_, &bytes, &data, nullptr, &code));
  const bool works = found.get() && clBuildProgram(found.get(), 1, &device_, options.c_str(),
                                                   nullptr, nullptr) == 0;
  return works ? std::move(found) : Program(); // one that the driver does not take is built anew
}

void OpenCl::keepProgram(const std::string& what, cl_program program) const {
  size_t bytes = 0;
  if (!host().cache_put) return;
  clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, nullptr);
  std::string data(bytes, '\0');
  auto* binary = reinterpret_cast<unsigned char*>(&data[0]);
  if (clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary, &binary, nullptr) == CL_SUCCESS)
    putIntoCache(what, data);
}

cdl::Status OpenCl::buildProgram(const std::string& what, const std::string& text,
                                 const std::string& options, Program& program, bool isCached) {
  const std::string all = "-w -cl-std=CL1.2" + options; // the log is for errors
  const std::string key = cdl::text(what, " ", hashOf(text.data(), text.size()), " ", all);
  if (isCached) program = programOfCache(key, all);
  if (program.get()) return cdl::ok();

  const char* texts[] = {text.c_str()};
  cl_int code = CL_SUCCESS;
  Program made(clCreateProgramWithSource(context_.get(), 1, texts, nullptr, &code));
  if (cdl::Status status = check(code, "clCreateProgramWithSource"); !status.isOk()) return status;
  code = clBuildProgram(made.get(), 1, &device_, all.c_str(), nullptr, nullptr);
  if (code != CL_SUCCESS) {
    std::string log(1 << 16, '\0');
    size_t size = 0;
    clGetProgramBuildInfo(made.get(), device_, CL_PROGRAM_BUILD_LOG, log.size(), &log[0], &size);
    log.resize(std::min(log.size(), size ? size - 1 : 0));
    return check(code, cdl::text("kernels of ", what, " with", options, " do not build: ", log));
  }
  if (isCached) keepProgram(key, made.get());
  program = std::move(made);
  return cdl::ok();
}
