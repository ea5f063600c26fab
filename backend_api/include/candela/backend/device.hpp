// Backend: one open device. Its defaults are host-addressable memory and queues that block; a
// device with memory of its own overrides the hooks, one with several hardware queues derives from
// Queue.
#pragma once

#include "candela/backend/capabilities.hpp"
#include "candela/backend/checks.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>

namespace cdl {

/// Option values by name, as the host passed them; what it did not pass has the schema's default.
class Options {
public:
  std::string get(const std::string& name) const {
    auto found = values_.find(name);
    return found == values_.end() ? std::string() : found->second;
  }
  void set(const std::string& name, const std::string& value) { values_[name] = value; }

private:
  std::map<std::string, std::string> values_;
};

/// A buffer as the backend made it: `data` is what memoryCreate left, host memory by default.
struct Memory {
  void* data = nullptr;
  uint64_t bytes = 0;
  uint32_t space = 0;
  void* base = nullptr; // the whole allocation, when the default memoryCreate made it
};

/// Where the bytes of a stored executable or of a packed constant go.
class Writer {
public:
  explicit Writer(const cdl_writer_t& writer) : writer_(writer) {}
  Status write(const void* data, uint64_t bytes) const {
    if (writer_.write(writer_.context, data, bytes)) return ok();
    return error(CDL_IO, text(bytes, " bytes could not be written"));
  }

private:
  const cdl_writer_t& writer_;
};

class Backend;
namespace detail {
struct Slots;
}

/// In order. By default the device's one way to work, blocking: what was submitted is done when the
/// call returns, or at the latest when Backend::finish does. A device with several ways to work
/// derives its own from it, made by Backend::queueCreate. Submissions come one at a time; waiting,
/// fail() and cancel() are for any thread.
class Queue {
public:
  explicit Queue(Backend* backend);
  /// After finish(), which is called before: what was submitted is done, its memory may go next.
  virtual ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  Backend* backend() const { return backend_; }
  std::unique_ptr<Timings> timings; ///< between profile_begin and profile_end

  // ---- Hooks. Offsets and sizes were checked against the buffer. Those of the backend by default.
  virtual Status write(Memory& to, uint64_t offset, const void* from, uint64_t bytes);
  virtual Status read(Memory& from, uint64_t offset, void* to, uint64_t bytes);
  virtual Status copy(Memory& to, uint64_t toOffset, Memory& from, uint64_t fromOffset,
                      uint64_t bytes);
  /// Waits for the work of this queue, and says whether it failed.
  virtual Status finish();
  /// Gives up what is not done. By default who waits for it is told CDL_CANCELLED, now and later,
  /// and so is who submits more: the hooks above are not called again, but for finish(). Work that
  /// the device has begun ends before the queue goes; a queue that can stop it overrides this, and
  /// calls it too. Where nothing is left to do nothing happens. The host asks for it where the
  /// backend makes its own queues (Backend::queueCreate).
  virtual Status cancel();

  /// Says that work failed. Who waits for a value that is not reached gets this status, now and
  /// later, and so does who submits more: a queue whose work failed is only destroyed. The first
  /// failure counts. A lost device (CDL_DEVICE_LOST) fails all of its queues. May be called by the
  /// thread that does the work.
  void fail(const Status& status);
  /// Ok while nothing failed.
  Status failure() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return failure_;
  }

  void signal(uint64_t value) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (value > reached_) reached_ = value;
    changed_.notify_all();
  }
  Status wait(uint64_t value, uint64_t timeoutNs) {
    const std::atomic<bool> goesOn(false);
    return waitUnless(goesOn, value, timeoutNs);
  }
  /// Waits before work of `submitter` begins, however long; no longer once that queue failed or was
  /// cancelled, which is what it returns then.
  Status waitFor(const Queue& submitter, uint64_t value) {
    Status reached = waitUnless(submitter.hasFailed_, value, UINT64_MAX);
    Status failed = submitter.failure();
    return failed.isOk() ? reached : failed;
  }

private:
  friend class Backend;
  friend struct detail::Slots;

  /// Returns before the value is reached where `givesUp` became true.
  Status waitUnless(const std::atomic<bool>& givesUp, uint64_t value, uint64_t timeoutNs) {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto ended = [&] { return reached_ >= value || !failure_.isOk() || givesUp; };
    const uint64_t day = 86'400'000'000'000; // longer ones would overflow the clock
    if (timeoutNs == UINT64_MAX)
      changed_.wait(lock, ended);
    else
      changed_.wait_for(lock, std::chrono::nanoseconds(timeoutNs < day ? timeoutNs : day), ended);
    if (failure_.code() == CDL_DEVICE_LOST) return failure_;
    if (reached_ >= value) return ok();
    if (!failure_.isOk()) return failure_;
    return error(CDL_TIMEOUT, text("the timeline stands at ", reached_, ", not yet at ", value));
  }
  void failAlone(const Status& status) {
    std::lock_guard<std::mutex> lock(mutex_);
    failLocked(status);
  }
  void failLocked(const Status& status) {
    if (failure_.isOk()) failure_ = status;
    hasFailed_ = true;
    changed_.notify_all();
  }
  void beginWork() {
    std::lock_guard<std::mutex> lock(mutex_);
    isBusy_ = true;
  }
  /// All that was submitted has ended. Ok where none of it failed or was cancelled before.
  Status endWork() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (failure_.isOk()) isBusy_ = false;
    return failure_;
  }
  void wake() {
    std::lock_guard<std::mutex> lock(mutex_);
    changed_.notify_all();
  }

  Backend* backend_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t reached_ = 0;
  Status failure_;
  std::atomic<bool> hasFailed_{false};
  /// Something was submitted since the last moment at which all was known to be done.
  bool isBusy_ = false;
};

/// The base of both interfaces. Objects are made by the plugin's entry (CDL_BACKEND): one for the
/// table's names and options, then one per open device. Functions of one device are called by
/// several threads unless they say otherwise. Its constructor says what the device can do, by the
/// functions of Capabilities.
class Backend : public Capabilities {
public:
  Backend(std::string name, std::string version)
      : name_(std::move(name)), version_(std::move(version)) {}
  virtual ~Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  const std::string& name() const { return name_; }
  const std::string& version() const { return version_; }
  const std::string& description() const { return description_; }
  const std::string& deviceName() const { return deviceName_.empty() ? name_ : deviceName_; }
  const std::vector<cdl_option_schema_t>& schema() const { return schema_; }
  std::pair<uint16_t, uint16_t> minHost() const { return minHost_; }
  Capabilities& capabilities() { return *this; }
  const Options& options() const { return options_; }
  Options& options() { return options_; }
  /// The host's services; a slot may be null.
  const cdl_host_t& host() const { return host_; }
  void setHost(const cdl_host_t& host) { host_ = host; }

  /// How many devices there are; asked of the first object only.
  virtual uint32_t deviceCount() { return 1; }
  /// Called once, after options and host were set. An error here is what the user sees.
  virtual Status open(uint32_t index) {
    (void)index;
    return ok();
  }

  // ---- Memory hooks. `alignment` is a power of two. Offsets and sizes were checked against the
  // buffer.
  virtual Status memoryCreate(uint64_t alignment, Memory& memory) {
    const uint64_t room = memory.bytes + alignment;
    if (room < memory.bytes || room > PTRDIFF_MAX ||
        !(memory.base = ::operator new(room, std::nothrow)))
      return error(CDL_OUT_OF_MEMORY, text("no ", memory.bytes, " bytes of host memory"));
    const uintptr_t at = reinterpret_cast<uintptr_t>(memory.base);
    memory.data = static_cast<char*>(memory.base) + ((alignment - at % alignment) % alignment);
    return ok();
  }
  virtual void memoryDestroy(Memory& memory) { ::operator delete(memory.base); }
  /// False: the host copies through the queue instead of mapping.
  virtual bool memoryMappable() const { return true; }
  virtual Status memoryMap(Memory& memory, uint64_t offset, uint64_t bytes, void** pointer) {
    (void)bytes;
    *pointer = static_cast<char*>(memory.data) + offset;
    return ok();
  }
  virtual Status memoryUnmap(Memory& memory, void* pointer) {
    (void)memory, (void)pointer;
    return ok();
  }
  /// Makes `memory` stand for bytes of the host from now on: a new one, or one that this function
  /// made before. Asked for where all hooks of memory are the defaults, since its memory is the
  /// host's then, and where this one is overridden. UNSUPPORTED leaves `memory` as it was: the host
  /// copies.
  virtual Status memoryImport(void* data, uint64_t bytes, Memory& memory) {
    (void)bytes;
    memory.data = data;
    return ok();
  }
  /// Writes a constant in the opaque layout of this name (Capabilities::opaqueLayout), in any
  /// length: the content of its buffer from then on, whose operand keeps its dims. The same bytes
  /// at every call. UNSUPPORTED where there is no such layout, or not for these dims or this type:
  /// the constant stays as it is. Called when a model is compiled.
  virtual Status packConstant(const std::string& layout, const Operand& constant,
                              const Writer& to) {
    (void)constant, (void)to;
    return unsupported("this backend packs no constants in layout '" + layout + "'");
  }
  virtual Status memoryWrite(Memory& to, uint64_t offset, const void* from, uint64_t bytes) {
    if (bytes) std::memcpy(static_cast<char*>(to.data) + offset, from, bytes);
    return ok();
  }
  virtual Status memoryRead(Memory& from, uint64_t offset, void* to, uint64_t bytes) {
    if (bytes) std::memcpy(to, static_cast<char*>(from.data) + offset, bytes);
    return ok();
  }
  virtual Status memoryCopy(Memory& to, uint64_t toOffset, Memory& from, uint64_t fromOffset,
                            uint64_t bytes) {
    if (bytes)
      std::memmove(static_cast<char*>(to.data) + toOffset,
                   static_cast<char*>(from.data) + fromOffset, bytes);
    return ok();
  }
  /// What Operand::data is made from; a device address is as good as a host pointer.
  virtual void* address(Memory& memory, uint64_t offset) {
    return static_cast<char*>(memory.data) + offset;
  }
  /// Waits for all work that the device does behind the calls, and says whether some of it failed.
  /// Called before a signal, and before a queue goes.
  virtual Status finish() { return ok(); }

  /// Makes a queue. Override it where queues differ in what they work on.
  virtual std::unique_ptr<Queue> queueCreate() { return std::make_unique<Queue>(this); }

  /// Says that the device is gone: all of its queues fail, and calls that would make something
  /// return `status`.
  void lose(const Status& status) {
    std::lock_guard<std::mutex> lock(queuesMutex_);
    if (lost_.isOk()) lost_ = status;
    for (Queue* queue : queues_) queue->failAlone(lost_);
  }
  /// Ok while the device is there.
  Status lost() const {
    std::lock_guard<std::mutex> lock(queuesMutex_);
    return lost_;
  }

protected:
  /// Says what the backend is, in one line.
  void describe(std::string text) { description_ = std::move(text); }
  /// What people call this device, said in open(); the backend's name otherwise.
  void nameDevice(std::string text) { deviceName_ = std::move(text); }
  /// Declares an option. Texts are literals. values: "a|b|c", "int", "float" or "string".
  void option(const char* name, const char* summary, const char* values, const char* defaultValue) {
    schema_.push_back(cdl_option_schema_t{name, summary, values, defaultValue});
    if (defaultValue) options_.set(name, defaultValue);
  }
  /// The oldest host ABI that it works with; without it: the one that it was built against.
  void requireHost(uint16_t major, uint16_t minor) { minHost_ = {major, minor}; }

private:
  std::string name_, version_, description_, deviceName_;
  std::vector<cdl_option_schema_t> schema_;
  std::pair<uint16_t, uint16_t> minHost_{CDL_ABI_MAJOR, CDL_ABI_MINOR};
  Options options_;
  cdl_host_t host_{};

  friend class Queue;
  // Names that a port hardly has: a member of a base class hides its functions of namespace scope.
  void registerQueue(Queue* queue) {
    std::lock_guard<std::mutex> lock(queuesMutex_);
    queues_.push_back(queue);
    if (!lost_.isOk()) queue->failAlone(lost_);
  }
  void forgetQueue(Queue* queue) {
    std::lock_guard<std::mutex> lock(queuesMutex_);
    queues_.erase(std::remove(queues_.begin(), queues_.end(), queue), queues_.end());
  }
  /// Whoever waits on one queue for work of another looks whether that one failed.
  void wakeQueues() {
    std::lock_guard<std::mutex> lock(queuesMutex_);
    for (Queue* queue : queues_) queue->wake();
  }
  mutable std::mutex queuesMutex_;
  std::vector<Queue*> queues_;
  Status lost_;
};

inline Queue::Queue(Backend* backend) : backend_(backend) { backend_->registerQueue(this); }
inline Queue::~Queue() { backend_->forgetQueue(this); }
inline Status Queue::write(Memory& to, uint64_t offset, const void* from, uint64_t bytes) {
  return backend_->memoryWrite(to, offset, from, bytes);
}
inline Status Queue::read(Memory& from, uint64_t offset, void* to, uint64_t bytes) {
  return backend_->memoryRead(from, offset, to, bytes);
}
inline Status Queue::copy(Memory& to, uint64_t toOffset, Memory& from, uint64_t fromOffset,
                          uint64_t bytes) {
  return backend_->memoryCopy(to, toOffset, from, fromOffset, bytes);
}
inline Status Queue::finish() { return backend_->finish(); }
inline Status Queue::cancel() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!isBusy_) return ok();
    failLocked(error(CDL_CANCELLED, "the queue was cancelled before its work was done"));
  }
  backend_->wakeQueues();
  return ok();
}
inline void Queue::fail(const Status& status) {
  if (status.isOk()) return;
  if (status.code() == CDL_DEVICE_LOST) return backend_->lose(status);
  failAlone(status);
  backend_->wakeQueues();
}

/// The bindings of one execution as addresses. Throws BadBinding for one that is missing, too small
/// or misaligned.
class Bindings final : public Addresses {
public:
  Bindings(Backend& backend, const cdl_image_t* image, const cdl_bindings_t* bindings,
           Timings* timings = nullptr, Queue* queue = nullptr)
      : backend_(backend), image_(image), bindings_(bindings), timings_(timings), queue_(queue) {
    checkBindings(image, bindings);
  }
  void* address(uint32_t buffer, uint64_t bytes) const override {
    if (buffer >= bindings_->count)
      throw BadBinding(text("bindings: ", bindings_->count, ", none for buffer ", buffer));
    const cdl_binding_t& b = bindings_->buffers[buffer];
    Memory* memory = reinterpret_cast<Memory*>(b.memory);
    checkBinding(image_, buffer, b, memory ? memory->bytes : 0, bytes);
    return backend_.address(*memory, b.offset);
  }
  Timings* timings() const override { return timings_; }
  Queue* queue() const override { return queue_; }

private:
  Backend& backend_;
  const cdl_image_t* image_;
  const cdl_bindings_t* bindings_;
  Timings* timings_;
  Queue* queue_;
};

} // namespace cdl
