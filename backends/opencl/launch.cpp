// The first level: programs, built when they are first needed, and the launch of their kernels.
#include "opencl.hpp"

namespace {

// work-items of a group; one size, since drivers may build a kernel anew for each
constexpr int kLocal = 32;

uint64_t hashOf(const void* data, size_t bytes) { // FNV-1a
  uint64_t hash = 14695981039346656037u;
  for (size_t i = 0; i < bytes; ++i)
    hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 1099511628211u;
  return hash;
}

} // namespace

const char* sourceText(const std::string& name) {
  for (const Source* source = kSources; source->name; ++source)
    if (name == source->name) return source->text;
  throw std::logic_error("no kernels named " + name);
}

std::string OpenCl::deviceText(cl_device_info what) const {
  char text[512] = "";
  clGetDeviceInfo(device_, what, sizeof text - 1, text, nullptr);
  return text;
}

// What is cached: a checksum and the binary. Drivers believe binaries: PoCL reads beyond the end of
// a short one.

Program OpenCl::programOfCache(const std::string& key, const std::string& options) {
  uint64_t size = 0, sum = 0;
  const void* stored =
      host().cache_get ? host().cache_get(host().context, key.data(), key.size(), &size) : nullptr;
  if (!stored || size <= sizeof sum) return Program();
  std::memcpy(&sum, stored, sizeof sum);
  const unsigned char* binary = static_cast<const unsigned char*>(stored) + sizeof sum;
  const size_t bytes = size - sizeof sum;
  if (sum != hashOf(binary, bytes)) return Program();
  cl_int code = CL_SUCCESS;
  Program found(
      clCreateProgramWithBinary(context_.get(), 1, &device_, &bytes, &binary, nullptr, &code));
  const bool works = found.get() && clBuildProgram(found.get(), 1, &device_, options.c_str(),
                                                   nullptr, nullptr) == 0;
  return works ? std::move(found) : Program(); // one that the driver does not take is built anew
}

void OpenCl::putIntoCache(const std::string& key, cl_program program) {
  size_t bytes = 0;
  if (!host().cache_put) return;
  clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, nullptr);
  std::vector<unsigned char> stored(sizeof(uint64_t) + bytes);
  unsigned char* binary = stored.data() + sizeof(uint64_t);
  if (!bytes ||
      clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary, &binary, nullptr) != CL_SUCCESS)
    return;
  const uint64_t sum = hashOf(binary, bytes);
  std::memcpy(stored.data(), &sum, sizeof sum);
  host().cache_put(host().context, key.data(), key.size(), stored.data(), stored.size());
}

cdl::Status OpenCl::buildProgram(const std::string& what, const std::string& text,
                                 const std::string& options, Program& program) {
  const std::string all = "-cl-std=CL1.2" + options;
  const std::string key =
      cdl::text(name(), " ", version(), " ", what, " ", hashOf(text.data(), text.size()), " ", all,
                " on ", deviceText(CL_DEVICE_NAME), " ", deviceText(CL_DEVICE_VERSION), " ",
                deviceText(CL_DRIVER_VERSION));
  program = programOfCache(key, all);
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
  putIntoCache(key, made.get());
  program = std::move(made);
  return cdl::ok();
}

cdl::Status OpenCl::kernel(const Launch& launch, cl_kernel* kernel) {
  Kernel& known = kernels_[launch.source + launch.options + ":" + launch.kernel];
  if (!known.get()) {
    Program& program = programs_[launch.source + launch.options];
    if (!program.get())
      if (cdl::Status status =
              buildProgram(cdl::text(launch.source, ".cl"),
                           std::string(sourceText("common")) + sourceText(launch.source),
                           cdl::text(" -DLOCAL=", kLocal, launch.options), program);
          !status.isOk())
        return status;
    cl_int code = CL_SUCCESS;
    known = Kernel(clCreateKernel(program.get(), launch.kernel, &code));
    if (cdl::Status status = check(code, std::string("kernel ") + launch.kernel); !status.isOk())
      return status;
  }
  *kernel = known.get();
  return cdl::ok();
}

void Launch::add(const cdl::Operand& operand) {
  offsets.emplace_back(numbers.size(), &operand);
  numbers.push_back(0);
  numbers.insert(numbers.end(), operand.strides.begin(), operand.strides.begin() + operand.rank);
}

void Launch::addZero(const cdl::Operand& zero) {
  if (zero.elem) offsets.emplace_back(numbers.size(), &zero);
  const bool isMany = zero.rank && zero.dims[0] > 1;
  numbers.insert(numbers.end(), {0, zero.elem, isMany ? zero.strides[0] : 0});
  operands.push_back(zero.elem ? &zero : nullptr);
}

cdl::Status OpenCl::claimed(uint16_t kind, uint16_t fn, const std::vector<uint8_t>& elems) {
  const cdl_capabilities_t* all = capabilities().build(0);
  for (const cdl_row_t* row = all->rows; row != all->rows + all->row_count; ++row)
    if (row->kind == kind && row->fn == fn &&
        (row->elem_count == 0 ||
         std::equal(elems.begin(), elems.end(), row->elems, row->elems + row->elem_count)))
      return cdl::ok();
  std::string types;
  for (const uint8_t elem : elems) types += cdl::text(" ", cdl::elemName(elem));
  return cdl::unsupported(
      cdl::text("no row claims function ", fn, " of ", cdl::kindName(kind), " on", types));
}

cdl::Status OpenCl::run(const cdl::Op& op, Launch launch) {
  std::vector<uint8_t> elems;
  for (uint32_t i = 0; i < op.operands(); ++i) elems.push_back(op.input(i).elem);
  for (uint32_t i = 0; i < op.instr().outputs; ++i) elems.push_back(op.output(i).elem);
  if (cdl::Status status = claimed(op.instr().kind, op.fn(), elems); !status.isOk()) return status;
  cdl::Status status = alive();
  if (!status.isOk() || launch.items == 0) return status;
  const std::lock_guard<std::mutex> lock(mutex_);
  cl_kernel kernel = nullptr;
  if (status = this->kernel(launch, &kernel); !status.isOk()) return status;

  for (const auto& [at, operand] : launch.offsets) {
    launch.numbers[at] = static_cast<int64_t>(located(operand->data).offset);
  }
  cl_int code = CL_SUCCESS;
  const Buffer numbers(clCreateBuffer(context_.get(), CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                                      launch.numbers.size() * sizeof(int64_t),
                                      launch.numbers.data(), &code));
  if (status = check(code, "the numbers of a launch"); !status.isOk()) return status;
  cl_uint arg = 0;
  const cl_mem first = numbers.get();
  code = clSetKernelArg(kernel, arg++, sizeof first, &first);
  for (const cdl::Operand* operand : launch.operands) {
    const cl_mem memory = operand ? memoryAt(operand->data) : nullptr;
    code = code ? code : clSetKernelArg(kernel, arg++, sizeof memory, &memory);
  }
  if (status = check(code, cdl::text("argument ", arg - 1, " of ", launch.kernel)); !status.isOk())
    return status;
  return enqueue(kernel, static_cast<size_t>(launch.items), kLocal, launch.kernel);
}

cdl::Status OpenCl::enqueue(cl_kernel kernel, size_t items, size_t local,
                            const std::string& doing) {
  const size_t global = (items + local - 1) / local * local;
  cl_event event = nullptr;
  const cl_int code =
      clEnqueueNDRangeKernel(queue_.get(), kernel, 1, nullptr, &global, &local, 0, nullptr, &event);
  return submitted(code, event, doing);
}
