// A port to OpenCL 1.2: one in-order queue, memory that the host cannot address, shape-generic
// kernels that are built when they are first needed.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <candela/backend.hpp>

#include <atomic>

/// An object of OpenCL, released at the end.
template <class T, cl_int(CL_API_CALL* Release)(T)> class Handle {
public:
  Handle() = default;
  explicit Handle(T object) : object_(object) {}
  Handle(Handle&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Handle() {
    if (object_) Release(object_);
  }
  T get() const { return object_; }

private:
  T object_ = nullptr;
};
using SubDevice = Handle<cl_device_id, clReleaseDevice>;
using Context = Handle<cl_context, clReleaseContext>;
using CommandQueue = Handle<cl_command_queue, clReleaseCommandQueue>;
using Program = Handle<cl_program, clReleaseProgram>;
using Kernel = Handle<cl_kernel, clReleaseKernel>;
using Buffer = Handle<cl_mem, clReleaseMemObject>;
using Event = Handle<cl_event, clReleaseEvent>;

constexpr const char* kVersion = "0.2.0";

/// A source file of kernels, embedded by CMake.
struct Source {
  const char* name;
  const char* text;
};
extern const Source kSources[];
const char* sourceText(const std::string& name);

/// What a kernel of ours is called with: numbers, and the memory that its pointers begin in.
struct Launch {
  const char* source;  ///< the file, without its ending
  std::string options; ///< of the build
  const char* kernel;
  int64_t items; ///< how many work-items have something to do
  std::vector<int64_t> numbers;
  std::vector<const cdl::Operand*> operands; ///< y first; null: there is none

  /// Appends the byte offset of an operand, which the launch fills in, and its strides.
  void add(const cdl::Operand& operand);
  /// Makes a zero point the next operand, one that may be absent: its offset, type and stride.
  void addZero(const cdl::Operand& zero);
  /// numbers[first] is where that operand begins
  std::vector<std::pair<size_t, const cdl::Operand*>> offsets;
};

/// The element types of a product of operands of `elem` by weights, as options of the compiler.
/// Sums of integers are unsigned, since they wrap.
const char* productTypes(uint8_t elem);

uint64_t hashOf(const void* data, size_t bytes);

/// A number that a device reports of itself.
template <class T> T deviceValue(cl_device_id device, cl_device_info what) {
  T value{};
  clGetDeviceInfo(device, what, sizeof value, &value, nullptr);
  return value;
}

/// A place in the memory of a device.
struct Located {
  cl_mem memory;
  uint64_t offset;
};

class OpenCl : public cdl::PrimitiveBackend {
public:
  OpenCl();
  uint32_t deviceCount() override;
  cdl::Status open(uint32_t index) override;

  cdl::Status memoryCreate(uint64_t alignment, cdl::Memory& memory) override;
  void memoryDestroy(cdl::Memory& memory) override;
  bool memoryMappable() const override { return false; }
  cdl::Status memoryWrite(cdl::Memory& to, uint64_t offset, const void* from,
                          uint64_t bytes) override;
  cdl::Status memoryRead(cdl::Memory& from, uint64_t offset, void* to, uint64_t bytes) override;
  cdl::Status memoryCopy(cdl::Memory& to, uint64_t toOffset, cdl::Memory& from, uint64_t fromOffset,
                         uint64_t bytes) override;
  cdl::Status finish() override;

  // Element by element: map.cl
  cdl::Status copy(const cdl::Copy& op) override { return map(op); }
  cdl::Status fill(const cdl::Fill& op) override { return map(op); }
  cdl::Status convert(const cdl::Convert& op) override { return map(op); }
  cdl::Status binary(const cdl::Binary& op) override { return map(op); }
  cdl::Status compare(const cdl::Compare& op) override { return map(op); }
  cdl::Status select(const cdl::Select& op) override { return map(op); }
  cdl::Status unary(const cdl::Unary& op) override { return map(op); }
  cdl::Status rescale(const cdl::Rescale& op) override;
  cdl::Status table(const cdl::Table& op) override { return map(op); }
  cdl::Status elementwise(const cdl::Elementwise& op) override;
  // move.cl, reduce.cl, matmul.cl
  cdl::Status gather(const cdl::Gather& op) override;
  cdl::Status scatter(const cdl::Scatter& op) override;
  cdl::Status reduce(const cdl::Reduce& op) override;
  cdl::Status matMul(const cdl::MatMul& op) override;
  // window.cl
  cdl::Status conv2d(const cdl::Conv2d& op) override;
  cdl::Status pool2d(const cdl::Pool2d& op) override;

  // What programs need, too.
  /// Builds a text of kernels, or takes its binary from the cache; `what` names it in errors.
  /// Whoever knows that the driver keeps binaries itself can leave it to that.
  cdl::Status buildProgram(const std::string& what, const std::string& text,
                           const std::string& options, Program& program, bool isCached = true);
  /// Whether the driver has a cache of its own, and takes long to hand out binaries.
  bool keepsBinaries() const;
  cl_device_id id() const { return device_; }
  cl_context context() const { return context_.get(); }
  /// The host's cache of whatever belongs to this device, driver and version of the backend.
  /// Empty: nothing whole is there.
  std::string cached(const std::string& what) const;
  void putIntoCache(const std::string& what, const std::string& data) const;
  /// Where an address that the host was given lies. Under mutex().
  Located located(const void* address);
  /// Puts a kernel whose arguments are set into the queue. Under mutex().
  cdl::Status enqueue(cl_kernel kernel, size_t items, size_t local, const std::string& doing);
  /// Keeps the events of what this thread puts into the queue from now on; null: no more.
  static void record(std::vector<Event>* events) { recorded_ = events; }
  /// OK, or what an error of OpenCL means here. A lost device stays lost.
  cdl::Status check(cl_int code, const std::string& doing);
  cdl::Status alive() const;
  std::mutex& mutex() { return mutex_; }

private:
  void claimOptional();
  cdl::Status map(const cdl::Op& op);

  /// UNSUPPORTED where no row has this function on these types, of the operands and then of the
  /// results.
  cdl::Status claimed(uint16_t kind, uint16_t fn, const std::vector<uint8_t>& elems);
  /// Puts one kernel into the queue, for an instruction that a row claims.
  cdl::Status run(const cdl::Op& op, Launch launch);
  cdl::Status chooseDevice(uint32_t index);
  cdl::Status takeThreads();
  std::string keyOf(const std::string& what) const;
  Program programOfCache(const std::string& what, const std::string& options);
  void keepProgram(const std::string& what, cl_program program) const;
  cdl::Status kernel(const Launch& launch, cl_kernel* kernel);
  cl_mem memoryAt(const void* address);
  std::string deviceText(cl_device_info what) const;

  cdl::Status submitted(cl_int code, cl_event event, const std::string& doing);

  cl_device_id device_ = nullptr;
  SubDevice part_; // of the device, where it is used in part
  Context context_;
  CommandQueue queue_;
  std::mutex mutex_; // of all below
  std::map<std::string, Program> programs_;
  std::map<std::string, Kernel> kernels_;
  std::map<uintptr_t, Buffer> memories_; // by the address that we gave it
  uintptr_t nextAddress_ = 4096;
  Event last_; // of what was put into the queue
  static thread_local std::vector<Event>* recorded_;
  std::atomic<cl_int> lost_{CL_SUCCESS};
};
