// Errors, memory and the queue of one device: all that the first day needs.
#include "opencl.hpp"

namespace {

const char* nameOf(cl_int code) {
  switch (code) {
#define NAME(id)                                                                                   \
  case id: return #id;
    NAME(CL_DEVICE_NOT_FOUND)
    NAME(CL_DEVICE_NOT_AVAILABLE)
    NAME(CL_COMPILER_NOT_AVAILABLE)
    NAME(CL_MEM_OBJECT_ALLOCATION_FAILURE)
    NAME(CL_OUT_OF_RESOURCES)
    NAME(CL_OUT_OF_HOST_MEMORY)
    NAME(CL_BUILD_PROGRAM_FAILURE)
    NAME(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
    NAME(CL_INVALID_VALUE)
    NAME(CL_INVALID_CONTEXT)
    NAME(CL_INVALID_COMMAND_QUEUE)
    NAME(CL_INVALID_MEM_OBJECT)
    NAME(CL_INVALID_BINARY)
    NAME(CL_INVALID_BUILD_OPTIONS)
    NAME(CL_INVALID_PROGRAM_EXECUTABLE)
    NAME(CL_INVALID_KERNEL_NAME)
    NAME(CL_INVALID_KERNEL_ARGS)
    NAME(CL_INVALID_WORK_GROUP_SIZE)
    NAME(CL_INVALID_BUFFER_SIZE)
    NAME(CL_INVALID_GLOBAL_WORK_SIZE)
#undef NAME
  default: return "an OpenCL error";
  }
}

/// Does the device still answer after this error?
bool isFatal(cl_int code) {
  return code == CL_DEVICE_NOT_AVAILABLE || code == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST ||
         code == CL_INVALID_COMMAND_QUEUE;
}

} // namespace

thread_local std::vector<Event>* OpenCl::recorded_ = nullptr;

// ---- Errors

cdl::Status OpenCl::alive() const {
  if (const cl_int code = lost_; code != CL_SUCCESS)
    return cdl::error(CDL_DEVICE_LOST, cdl::text("the device was lost: ", nameOf(code)), code);
  return cdl::ok();
}

cdl::Status OpenCl::check(cl_int code, const std::string& doing) {
  if (code == CL_SUCCESS) return cdl::ok();
  const std::string what = cdl::text(doing, ": ", nameOf(code), " (", code, ")");
  if (isFatal(code)) {
    lost_ = code;
    return cdl::error(CDL_DEVICE_LOST, what, code);
  }
  const bool isMemory = code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_RESOURCES ||
                        code == CL_OUT_OF_HOST_MEMORY || code == CL_INVALID_BUFFER_SIZE;
  return cdl::error(isMemory ? CDL_OUT_OF_MEMORY : CDL_INTERNAL, what, code);
}

cdl::Status OpenCl::submitted(cl_int code, cl_event event, const std::string& doing) {
  if (code != CL_SUCCESS) return check(code, doing);
  if (recorded_ && clRetainEvent(event) == CL_SUCCESS) recorded_->emplace_back(event);
  last_ = Event(event);
  return cdl::ok();
}

// ---- Memory. The host gets addresses that it cannot use: they only tell buffers and offsets
// apart.

cdl::Status OpenCl::memoryCreate(uint64_t alignment, cdl::Memory& memory) {
  if (cdl::Status status = alive(); !status.isOk()) return status;
  cl_int code = CL_SUCCESS;
  Buffer buffer(clCreateBuffer(context_.get(), CL_MEM_READ_WRITE, memory.bytes, nullptr, &code));
  if (cdl::Status status = check(code, cdl::text(memory.bytes, " bytes of device memory"));
      !status.isOk())
    return status;
  const std::lock_guard<std::mutex> lock(mutex_);
  nextAddress_ = (nextAddress_ + alignment - 1) & ~(alignment - 1);
  memory.data = reinterpret_cast<void*>(nextAddress_);
  memories_.emplace(nextAddress_, std::move(buffer));
  nextAddress_ += memory.bytes + 1; // so that its end is nobody's beginning
  return cdl::ok();
}

void OpenCl::memoryDestroy(cdl::Memory& memory) {
  const std::lock_guard<std::mutex> lock(mutex_);
  // OpenCL keeps it until the queue is through with it
  memories_.erase(reinterpret_cast<uintptr_t>(memory.data));
}

Located OpenCl::located(const void* address) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  const auto after = memories_.upper_bound(at);
  if (after == memories_.begin()) throw cdl::BadAccess("an address of no memory");
  const auto found = std::prev(after);
  return {found->second.get(), at - found->first};
}

cl_mem OpenCl::memoryAt(const void* address) { return located(address).memory; }

cdl::Status OpenCl::memoryWrite(cdl::Memory& to, uint64_t offset, const void* from,
                                uint64_t bytes) {
  cdl::Status status = alive();
  if (!status.isOk() || bytes == 0) return status;
  const std::lock_guard<std::mutex> lock(mutex_);
  return check(clEnqueueWriteBuffer(queue_.get(), memoryAt(to.data), CL_TRUE, offset, bytes, from,
                                    0, nullptr, nullptr),
               "clEnqueueWriteBuffer");
}

cdl::Status OpenCl::memoryRead(cdl::Memory& from, uint64_t offset, void* to, uint64_t bytes) {
  cdl::Status status = alive();
  if (!status.isOk() || bytes == 0) return status;
  const std::lock_guard<std::mutex> lock(mutex_);
  return check(clEnqueueReadBuffer(queue_.get(), memoryAt(from.data), CL_TRUE, offset, bytes, to, 0,
                                   nullptr, nullptr),
               "clEnqueueReadBuffer");
}

cdl::Status OpenCl::memoryCopy(cdl::Memory& to, uint64_t toOffset, cdl::Memory& from,
                               uint64_t fromOffset, uint64_t bytes) {
  cdl::Status status = alive();
  if (!status.isOk() || bytes == 0) return status;
  const bool isApart = toOffset >= fromOffset + bytes || fromOffset >= toOffset + bytes;
  if (to.data == from.data && !isApart) // which OpenCL refuses, and the queue shall go on
    return cdl::error(CDL_INVALID_ARGUMENT, "a copy between ranges that overlap");
  const std::lock_guard<std::mutex> lock(mutex_);
  cl_event event = nullptr;
  const cl_int code = clEnqueueCopyBuffer(queue_.get(), memoryAt(from.data), memoryAt(to.data),
                                          fromOffset, toOffset, bytes, 0, nullptr, &event);
  return submitted(code, event, "clEnqueueCopyBuffer");
}

cdl::Status OpenCl::finish() {
  if (cdl::Status status = alive(); !status.isOk()) return status;
  if (cdl::Status status = check(clFinish(queue_.get()), "clFinish"); !status.isOk()) return status;
  const std::lock_guard<std::mutex> lock(mutex_);
  cl_int state = CL_COMPLETE;
  if (last_.get())
    clGetEventInfo(last_.get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, nullptr);
  if (state >= 0) return cdl::ok();
  lost_ = state; // a kernel that failed leaves nothing to rely on
  return alive();
}
