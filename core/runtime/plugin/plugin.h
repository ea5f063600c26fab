#pragma once

#include <atomic>
#include <map>
#include <mutex>

#include "core/compiler/capabilities/target.h"
#include "core/support/text/name.h"

/// Backends behind the C ABI: finding, negotiating, and objects that free themselves. Nothing here
/// knows an IR.
namespace candela::runtime::plugin {

class Device;
using Options = std::map<std::string, std::string>;

/// A backend whose table was negotiated. Shared libraries are never closed.
class Plugin : public std::enable_shared_from_this<Plugin> {
public:
  /// A shared library. Failure: not_found, or incompatible with both version numbers, naming the
  /// file.
  static Result<std::shared_ptr<Plugin>> load(const std::string& path);
  /// A backend that is linked in. `origin` names it in messages.
  static Result<std::shared_ptr<Plugin>> fromQuery(cdl_backend_query_fn query,
                                                   const std::string& origin);

  const std::string& origin() const { return origin_; }
  std::string name() const { return table_.name; }
  std::string version() const { return table_.version; }
  std::string description() const { return table_.description ? table_.description : ""; }
  uint32_t deviceCount() const { return table_.device_count; }
  std::span<const cdl_option_schema_t> options() const {
    return {table_.options, table_.option_count};
  }
  const cdl_plugin_t& table() const { return table_; }

  /// Opens device `index` after its options were checked against the schema, and its capability
  /// table too.
  Result<std::shared_ptr<Device>> open(uint32_t index, const Options& options);
  /// Whether options that a file holds may be passed on: a text that is no list of words or number
  /// may name a file, which the plugin would read or write. Failure: refused, naming the option.
  Status checkStoredOptions(const Options& options) const;

private:
  Plugin() = default;
  std::string origin_;
  cdl_plugin_t table_{};
};

/// Registers a backend of this process, for embedding and for debuggers. Any thread, before it is
/// looked up.
void registerStatic(const std::string& name, cdl_backend_query_fn query);

/// What whoever runs the program says: a name, or a path with a slash or ".so".
Result<std::shared_ptr<Plugin>> findPlugin(const std::string& nameOrPath);
/// What a file says: a name and never a path. Static registration first, then libcandela_NAME.so on
/// the plugin path: $CANDELA_PLUGIN_PATH (colons, absolute), then lib/candela beside the program's
/// folder and beside this library.
Result<std::shared_ptr<Plugin>> findPluginNamed(const std::string& name);
/// A device that can be opened.
struct FoundDevice {
  std::shared_ptr<Plugin> plugin;
  uint32_t index = 0;

  std::string id() const { return text::deviceNameText(plugin->name(), index); }
  Result<std::shared_ptr<Device>> open(const Options& options) const {
    return plugin->open(index, options);
  }
};
/// What whoever runs the program says: NAME, NAME:N, or a path, which may end with :N too. Failure:
/// not_found; a number of no device is open()'s.
Result<FoundDevice> findDevice(const std::string& nameOrPath);
/// What a file says: NAME or NAME:N.
Result<FoundDevice> findDeviceNamed(const std::string& name);
/// Names or paths of everything that findPlugin would find, sorted; files that do not load are left
/// in.
std::vector<std::string> listPlugins();

/// Memory of a device, freed with the last reference.
class DeviceMemory {
public:
  cdl_memory_t* handle() const { return handle_.get(); }
  /// The host's address, or null when the device cannot map.
  void* mapped() const { return mapped_; }
  uint64_t bytes() const { return bytes_; }
  /// What its first byte is aligned to; 1 where it stands for bytes of the host.
  uint64_t alignment() const { return alignment_; }

private:
  friend class Device;
  std::shared_ptr<cdl_memory_t> handle_; ///< keeps the device
  void* mapped_ = nullptr;
  uint64_t bytes_ = 0, alignment_ = 1;
};

class Queue {
public:
  cdl_queue_t* handle() const { return handle_.get(); }
  Status write(const DeviceMemory& to, uint64_t offset, const void* from, uint64_t bytes);
  Status read(const DeviceMemory& from, uint64_t offset, void* to, uint64_t bytes);
  Status copy(const DeviceMemory& to, uint64_t toOffset, const DeviceMemory& from,
              uint64_t fromOffset, uint64_t bytes);
  /// Moves the timeline to next() behind everything submitted so far, and returns that value.
  Result<uint64_t> signal();
  /// Gives up what is not done. False where the plugin cannot. Any thread.
  bool cancel();
  /// Waits until everything submitted so far is done.
  Status drain();
  /// The next value of the timeline.
  uint64_t next() { return ++value_; }
  Status wait(uint64_t value);

private:
  friend class Device;
  std::shared_ptr<Device> device_;
  std::shared_ptr<cdl_queue_t> handle_;
  uint64_t value_ = 0;
};

/// Bytes of memory that a device has given, in all of its spaces; imported bytes are the host's.
struct MemoryUse {
  uint64_t now = 0, most = 0;
};

class Device : public std::enable_shared_from_this<Device> {
public:
  ~Device();

  const Plugin& plugin() const { return *plugin_; }
  uint32_t index() const { return index_; }
  /// "NAME", or "NAME:N" of the backend's device N: what --backend, bundles and reports call it.
  std::string id() const { return text::deviceNameText(plugin_->name(), index_); }
  const cdl_plugin_t& table() const { return plugin_->table(); }
  cdl_device_t* handle() const { return handle_; }
  const capabilities::Target& target() const { return *target_; }
  const Options& options() const { return options_; }
  std::string name() const;
  /// True when the plugin compiles whole programs (the program API); else it runs instructions (the
  /// primitive API).
  bool compiles() const { return table().compile != nullptr; }
  MemoryUse memoryUse() const {
    return {bytesInUse_.load(std::memory_order_relaxed),
            mostBytesInUse_.load(std::memory_order_relaxed)};
  }

  Result<std::shared_ptr<DeviceMemory>> allocate(uint32_t space, uint64_t bytes,
                                                 uint64_t alignment);
  Result<std::shared_ptr<Queue>> createQueue();
  /// Bytes of the default space that were allocated when memory ended last; 0: it did not since the
  /// last such question.
  uint64_t takeShortage() { return shortage_.exchange(0); }
  /// Held by whoever runs what the device has no room to keep: one at a time.
  std::mutex& turn() { return turn_; }
  /// Makes `memory` (null, or of an earlier call for this space that no work uses) stand for bytes
  /// that the host has.
  /// False where the device does not take them: the host copies then.
  Result<bool> import(std::shared_ptr<DeviceMemory>& memory, uint32_t space, void* data,
                      uint64_t bytes);
  /// Memory of its own with these bytes in it.
  Result<std::shared_ptr<DeviceMemory>> allocateWith(const Bytes& bytes, uint32_t space,
                                                     uint64_t alignment);
  /// The device's copy of these bytes, uploaded once per device and kept while somebody uses it.
  Result<std::shared_ptr<DeviceMemory>> upload(const Bytes& bytes, uint32_t space,
                                               uint64_t alignment);

private:
  friend class Plugin;
  Device(std::shared_ptr<Plugin> plugin, uint32_t index)
      : plugin_(std::move(plugin)), index_(index) {}
  std::shared_ptr<Plugin> plugin_;
  uint32_t index_;
  cdl_device_t* handle_ = nullptr;
  std::optional<capabilities::Target> target_;
  void countAllocated(uint64_t bytes);
  Options options_;
  std::atomic<uint64_t> bytesInUse_ = 0, mostBytesInUse_ = 0;
  std::atomic<uint64_t> allocatedBytes_ = 0; ///< of the default space
  std::atomic<uint64_t> shortage_ = 0;
  std::mutex turn_;
  std::mutex mutex_;
  /// by content hash, space and alignment
  std::map<std::string, std::weak_ptr<DeviceMemory>> uploads_;
};

/// A cdl_error_t with room for a message, and the Status that it makes.
class ErrorBuffer {
public:
  ErrorBuffer() { text_[0] = '\0'; }
  cdl_error_t* get() { return &error_; }
  Status status(cdl_code_t code, std::string_view who) const;

private:
  char text_[1024];
  cdl_error_t error_{text_, sizeof(text_), 0};
};

/// A function of a plugin's table and its name there, for messages.
template <typename Function> struct Slot {
  Slot(const char* slotName, Function function) : name(slotName), call(function) {}
  Slot(Function function) : call(function) {} ///< of no plugin
  const char* name = "";
  Function call;
};
#define CDL_SLOT(table, slot)                                                                      \
  ::candela::runtime::plugin::Slot { #slot, (table).slot }

/// What the exception that is being handled says of the plugin's slot that threw it, which no slot
/// may.
Status thrownBy(std::string_view who, const char* slot);
/// The same where nothing can be returned: a line on stderr.
void tellThrownBy(const char* who, const char* slot) noexcept;

/// Calls a slot, whose last argument is the error; `who` stands in front of its message.
template <typename S, typename... Args>
Status callSlot(std::string_view who, S slot, Args... args) {
  const Slot named(slot);
  ErrorBuffer error;
  cdl_code_t code = CDL_OK;
  try {
    code = named.call(args..., error.get());
  } catch (...) {
    return thrownBy(who, named.name);
  }
  return error.status(code, who);
}

/// Calls a slot that gives a value and knows no error.
template <typename Function, typename... Args>
auto askSlot(std::string_view who, Slot<Function> slot, Args... args)
    -> Result<decltype(slot.call(args...))> {
  try {
    return slot.call(args...);
  } catch (...) {
    return thrownBy(who, slot.name);
  }
}

/// Calls a slot that ends an object.
template <typename Function, typename... Args>
void endBySlot(const char* who, Slot<Function> slot, Args... args) noexcept {
  try {
    (void)slot.call(args...);
  } catch (...) {
    tellThrownBy(who, slot.name);
  }
}

/// By buffer of a checked image: constants, and local buffers that only copies of constants are
/// written to.
std::vector<bool> constantBuffers(const cdl_image_t* image);
/// The question that a target is asked about an instruction of a checked image; `constants` as
/// above.
capabilities::InstrDesc describe(const cdl_image_t* image, uint32_t instr,
                                 const std::vector<bool>& constants);
capabilities::InstrDesc describe(const cdl_image_t* image, uint32_t instr);

} // namespace candela::runtime::plugin
