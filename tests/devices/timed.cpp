// Two devices of one plugin that answer after a declared time: by a clock, not by the cores. Each
// has memory that the host does not see, a copy engine and an array; queues work beside each other,
// and engines serve them one after the other. Values are right: they are computed beside the clock.
//
//   ps_per_mac=N       how long the array takes for a multiply-accumulate
//   us_per_run=N       and for each execution
//   us_per_mib=N       how long the copy engine takes for so many bytes
//   values=on|off      off: outputs hold anything
//   fault=NAME         what executions do now and then: none, memory (CDL_OUT_OF_MEMORY), hang
//   (until
//                      they are cancelled); or, from then on, lost (CDL_DEVICE_LOST)
//   fault_every=N      every N-th execution of the device; of lost: the N-th
#include <candela/backend.hpp>

#include <algorithm>
#include <chrono>

#include "core/runtime/host_executor/soft.h"

namespace {

using Clock = std::chrono::steady_clock;

/// A part of a device that does one thing after the other.
class Engine {
public:
  /// From when it has nothing to do, a job of this length included.
  Clock::time_point reserve(std::chrono::nanoseconds length) {
    const std::lock_guard<std::mutex> lock(mutex_);
    free_ = std::max(free_, Clock::now()) + length;
    return free_;
  }

private:
  std::mutex mutex_;
  Clock::time_point free_;
};

class TimedQueue : public cdl::Queue {
public:
  using cdl::Queue::Queue;

  cdl::Status write(cdl::Memory& to, uint64_t offset, const void* from, uint64_t bytes) override {
    const cdl::Status status = transfer(bytes);
    return status.isOk() ? cdl::Queue::write(to, offset, from, bytes) : status;
  }
  cdl::Status read(cdl::Memory& from, uint64_t offset, void* to, uint64_t bytes) override {
    const cdl::Status status = transfer(bytes);
    return status.isOk() ? cdl::Queue::read(from, offset, to, bytes) : status;
  }
  cdl::Status copy(cdl::Memory& to, uint64_t toOffset, cdl::Memory& from, uint64_t fromOffset,
                   uint64_t bytes) override {
    const cdl::Status status = transfer(bytes);
    return status.isOk() ? cdl::Queue::copy(to, toOffset, from, fromOffset, bytes) : status;
  }
  cdl::Status cancel() override;

  /// Until then, unless the queue is given up.
  cdl::Status until(Clock::time_point time) {
    std::unique_lock<std::mutex> lock(mutex_);
    wake_.wait_until(lock, time, [&] { return !failure().isOk(); });
    return failure();
  }
  cdl::Status forever() { return until(Clock::now() + std::chrono::hours(24)); }

private:
  cdl::Status transfer(uint64_t bytes);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<bool> wasCalled_{false};
};

class Timed : public cdl::ProgramBackend {
public:
  Timed() : ProgramBackend("timed", "0.1.0") {
    describe("two devices that answer after a declared time");
    for (cdl::Profile profile : {cdl::Profile::FP32, cdl::Profile::INT8}) claim(profile);
    for (cdl::Kind kind : {cdl::Kind::Conv2d, cdl::Kind::MatMul}) epilogue(kind, kSteps);
    space("vram", 0, 0, 64);
    space("host", CDL_SPACE_HOST_MAPPED, 0, 16);
    option("ps_per_mac", "picoseconds of the array for a multiply-accumulate", "int", "0");
    option("us_per_run", "microseconds of the array for each execution", "int", "0");
    option("us_per_mib", "microseconds of the copy engine for a MiB", "int", "0");
    option("values", "whether outputs are computed", "on|off", "on");
    option("fault", "what executions do now and then", "none|memory|hang|deaf|lost", "none");
    option("fault_every", "every N-th execution", "int", "1");
  }
  uint32_t deviceCount() override { return 2; }
  cdl::Status open(uint32_t index) override {
    nameDevice("timed device " + std::to_string(index));
    return cdl::ok();
  }
  std::unique_ptr<cdl::Queue> queueCreate() override { return std::make_unique<TimedQueue>(this); }
  cdl::Status memoryMap(cdl::Memory& memory, uint64_t offset, uint64_t bytes,
                        void** pointer) override {
    if (memory.space == 0) return cdl::error(CDL_UNSUPPORTED, "vram is not seen by the host");
    return ProgramBackend::memoryMap(memory, offset, bytes, pointer);
  }
  cdl::Status memoryImport(void* data, uint64_t bytes, cdl::Memory& memory) override {
    if (memory.space == 0) return cdl::error(CDL_UNSUPPORTED, "the array reads vram alone");
    return ProgramBackend::memoryImport(data, bytes, memory);
  }
  cdl::Status compile(const cdl_image_t* image, const void* const* constants,
                      std::unique_ptr<cdl::Executable>& executable) override;
  /// In cycles of a nanosecond.
  cdl::Status cost(const cdl_image_t* image, uint32_t instr, cdl_cost_t& cost) override;

  int64_t number(const char* name) const { return std::stoll(options().get(name)); }
  Engine array, copies;
  std::atomic<uint64_t> executions{0};

private:
  static constexpr std::initializer_list<cdl::Kind> kSteps = {
      cdl::Kind::Unary,  cdl::Kind::Binary,  cdl::Kind::Compare,
      cdl::Kind::Select, cdl::Kind::Convert, cdl::Kind::Rescale};
};

cdl::Status TimedQueue::transfer(uint64_t bytes) {
  Timed& device = static_cast<Timed&>(*backend());
  const int64_t perMib = device.number("us_per_mib");
  if (perMib == 0) return failure();
  const auto ns = static_cast<int64_t>(bytes) * perMib * 1000 / (1 << 20);
  return until(device.copies.reserve(std::chrono::nanoseconds(ns)));
}

cdl::Status TimedQueue::cancel() {
  const bool isDeaf = backend()->options().get("fault") == "deaf";
  if (isDeaf && !wasCalled_.exchange(true)) return cdl::ok();
  const cdl::Status status = cdl::Queue::cancel();
  const std::lock_guard<std::mutex> lock(mutex_);
  wake_.notify_all();
  return status;
}

int64_t elements(const cdl_view_t& view) {
  int64_t count = 1;
  for (uint32_t d = 0; d < view.rank; ++d) count *= view.dims[d];
  return count;
}

int64_t macsOf(const cdl_image_t* image, uint32_t index) {
  const cdl_instr_t* instr = cdl_get_instr(image, index);
  if (instr->kind != CDL_KIND_CONV2D && instr->kind != CDL_KIND_MATMUL) return 0;
  const cdl_view_t& a = *cdl_get_input(image, instr, 0);
  const cdl_view_t& b = *cdl_get_input(image, instr, 1);
  const int64_t results = elements(*cdl_get_output(image, instr, 0));
  return instr->kind == CDL_KIND_MATMUL ? results * a.dims[a.rank - 1]
                                        : results * (elements(b) / b.dims[0]);
}

/// Of an execution; of a loop's body once.
int64_t macsOf(const cdl_image_t* image) {
  int64_t sum = 0;
  for (uint32_t i = 1; i < image->instrs.count; ++i) sum += macsOf(image, i);
  return sum;
}

class Execution : public cdl::Executable {
public:
  Execution(Timed& device, const cdl_image_t* image)
      : device_(device), image_(image), length_(macsOf(image) * device.number("ps_per_mac") / 1000 +
                                                device.number("us_per_run") * 1000) {}

  cdl::Status execute(const cdl::Addresses& buffers) override {
    auto& queue = static_cast<TimedQueue&>(*buffers.queue());
    if (cdl::Status fault = nextFault(queue); !fault.isOk()) return fault;
    const Clock::time_point end = device_.array.reserve(length_);
    if (device_.options().get("values") == "on")
      if (cdl::Status status = compute(buffers); !status.isOk()) return status;
    return queue.until(end);
  }

private:
  cdl::Status nextFault(TimedQueue& queue) {
    const std::string fault = device_.options().get("fault");
    if (fault == "none") return cdl::ok();
    const uint64_t count = ++device_.executions;
    const auto every = static_cast<uint64_t>(std::max<int64_t>(device_.number("fault_every"), 1));
    const bool isLost = fault == "lost" && count >= every;
    if (isLost) {
      const cdl::Status lost = cdl::error(CDL_DEVICE_LOST, device_.deviceName() + " is gone");
      queue.fail(lost);
      return lost;
    }
    if (count % every != 0 || fault == "lost") return cdl::ok();
    if (fault == "memory") return cdl::error(CDL_OUT_OF_MEMORY, "no memory for this execution");
    return queue.forever();
  }

  cdl::Status compute(const cdl::Addresses& buffers) const {
    std::vector<void*> addresses(image_->buffers.count);
    for (uint32_t b = 1; b < image_->buffers.count; ++b)
      addresses[b] = buffers.address(b, cdl_get_buffer(image_, b)->bytes);
    char text[256] = "";
    cdl_error_t error{text, sizeof text, 0};
    const cdl_code_t code =
        candela::runtime::host_executor::runAll(image_, addresses.data(), nullptr, &error);
    return code == CDL_OK ? cdl::ok() : cdl::error(code, text);
  }

  Timed& device_;
  const cdl_image_t* image_;
  std::chrono::nanoseconds length_;
};

cdl::Status Timed::compile(const cdl_image_t* image, const void* const*,
                           std::unique_ptr<cdl::Executable>& executable) {
  executable = std::make_unique<Execution>(*this, image);
  return cdl::ok();
}

cdl::Status Timed::cost(const cdl_image_t* image, uint32_t instr, cdl_cost_t& cost) {
  const int64_t macs = instr ? macsOf(image, instr) : macsOf(image);
  cost.latency_cycles = static_cast<uint64_t>(macs * number("ps_per_mac") / 1000);
  cost.busy_cycles[0] = cost.latency_cycles;
  return cdl::ok();
}

} // namespace

CDL_BACKEND(Timed)
