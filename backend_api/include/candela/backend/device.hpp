// Backend: one open device. Its defaults are host-addressable memory and queues that block; a
// device with memory of its own overrides the hooks.
#pragma once

#include "candela/backend/capabilities.hpp"
#include "candela/backend/checks.hpp"

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

/// In order, blocking: what was submitted is done when the call returns. Waiting is from any
/// thread.
class Queue {
public:
  explicit Queue(class Backend* backend) : backend_(backend) {}
  Backend* backend() const { return backend_; }
  std::unique_ptr<Timings> timings; ///< between profile_begin and profile_end

  void signal(uint64_t value) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (value > reached_) reached_ = value;
    changed_.notify_all();
  }
  Status wait(uint64_t value, uint64_t timeoutNs) {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto done = [&] { return reached_ >= value; };
    if (timeoutNs == UINT64_MAX) {
      changed_.wait(lock, done);
      return ok();
    }
    const uint64_t day = 86'400'000'000'000; // longer ones would overflow the clock
    if (changed_.wait_for(lock, std::chrono::nanoseconds(timeoutNs < day ? timeoutNs : day), done)) return ok();
    return error(CDL_TIMEOUT, text("the timeline stands at ", reached_, ", not yet at ", value));
  }

private:
  Backend* backend_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t reached_ = 0;
};

/// The base of both doors. Objects are made by the plugin's entry (CDL_BACKEND): one for the
/// table's names and options, then one per open device. Functions of one device are called by
/// several threads unless they say otherwise. Its constructor says what the device can do, by the
/// functions of Capabilities.
class Backend : public Capabilities {
public:
  Backend(std::string name, std::string version) : name_(std::move(name)), version_(std::move(version)) {}
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
    if (room < memory.bytes || room > PTRDIFF_MAX || !(memory.base = ::operator new(room, std::nothrow)))
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
  /// Makes `memory` stand for bytes of the host from now on: a new one, or one that this function made before. Asked
  /// for where all hooks of memory are the defaults, since its memory is the host's then, and where this one is
  /// overridden. UNSUPPORTED leaves `memory` as it was: the host copies.
  virtual Status memoryImport(void* data, uint64_t bytes, Memory& memory) {
    (void)bytes;
    memory.data = data;
    return ok();
  }
  virtual Status memoryWrite(Memory& to, uint64_t offset, const void* from, uint64_t bytes) {
    if (bytes) std::memcpy(static_cast<char*>(to.data) + offset, from, bytes);
    return ok();
  }
  virtual Status memoryRead(Memory& from, uint64_t offset, void* to, uint64_t bytes) {
    if (bytes) std::memcpy(to, static_cast<char*>(from.data) + offset, bytes);
    return ok();
  }
  virtual Status memoryCopy(Memory& to, uint64_t toOffset, Memory& from, uint64_t fromOffset, uint64_t bytes) {
    if (bytes) std::memmove(static_cast<char*>(to.data) + toOffset, static_cast<char*>(from.data) + fromOffset, bytes);
    return ok();
  }
  /// What Operand::data is made from; a device address is as good as a host pointer.
  virtual void* address(Memory& memory, uint64_t offset) { return static_cast<char*>(memory.data) + offset; }
  /// Waits for work that the device does behind the queue's back; called before a signal.
  virtual Status finish() { return ok(); }

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
};

/// The bindings of one execution as addresses. Throws BadBinding for one that is missing, too small or misaligned.
class Bindings final : public Addresses {
public:
  Bindings(Backend& backend, const cdl_image_t* image, const cdl_bindings_t* bindings, Timings* timings = nullptr)
      : backend_(backend), image_(image), bindings_(bindings), timings_(timings) {
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

private:
  Backend& backend_;
  const cdl_image_t* image_;
  const cdl_bindings_t* bindings_;
  Timings* timings_;
};

} // namespace cdl
