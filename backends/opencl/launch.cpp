// The first level: programs, built when they are first needed, and the launch of their kernels.
#include "opencl.hpp"

namespace {

// work-items of a group; one size, since drivers may build a kernel anew for each
constexpr int kLocal = 32;

} // namespace

const char* sourceText(const std::string& name) {
  for (const Source* source = kSources; source->name; ++source)
    if (name == source->name) return source->text;
  throw std::logic_error("no kernels named " + name);
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
