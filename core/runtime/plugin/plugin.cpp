#include "core/runtime/plugin/plugin.h"

#include "core/runtime/plugin/check_schema.h"
#include "core/runtime/plugin/exports.h"
#include "core/runtime/plugin/host.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <filesystem>

#include "core/support/hash.h"
#include "core/support/text/name.h"
#include "core/support/text/scan.h"
#include "core/support/text/shown.h"

namespace candela::runtime::plugin {
namespace {

// The oldest plugin whose table this host reads.
using Version = std::pair<uint16_t, uint16_t>;
constexpr Version kMinPlugin{0, 1}, kHost{CDL_ABI_MAJOR, CDL_ABI_MINOR};

constexpr uint32_t kMostDevices = 1024; ///< far above what any machine has

/// What must hold of a table before anything of it is used.
Status checkTable(const cdl_plugin_t& table, const std::string& origin) {
  const auto incompatible = [&](std::string what) {
    return Status(Code::incompatible, what).context(origin);
  };
  const cdl_header_t& header = table.header;
  if (header.struct_size < offsetof(cdl_plugin_t, device_open))
    return incompatible(fmt::format("plugin table of {} bytes is too short, expected at least {}",
                                    header.struct_size, offsetof(cdl_plugin_t, device_open)));
  if (kHost < Version{table.min_host_major, table.min_host_minor})
    return incompatible(fmt::format("plugin needs host ABI {}.{} or newer, this host has {}.{}",
                                    table.min_host_major, table.min_host_minor, CDL_ABI_MAJOR,
                                    CDL_ABI_MINOR));
  if (header.major != CDL_ABI_MAJOR || Version{header.major, header.minor} < kMinPlugin)
    return incompatible(fmt::format(
        "plugin was built against ABI {}.{}, this host takes {}.{} to {}.x", header.major,
        header.minor, kMinPlugin.first, kMinPlugin.second, CDL_ABI_MAJOR));
  if (table.device_count > kMostDevices)
    return incompatible(
        fmt::format("{} devices are more than the limit of {}", table.device_count, kMostDevices));
  if (!text::isBackendName(table.name ? table.name : ""))
    return incompatible("plugin has no name of [a-z0-9_]");
  if (!table.version) return incompatible("plugin has no version");
#define CDL_X(slot) {#slot, table.slot},
  const std::pair<const char*, bool> required[] = {
      CDL_REQUIRED_SLOTS(CDL_X){"run or compile", table.run || table.compile}};
#undef CDL_X
  for (const auto& [slot, present] : required)
    if (!present) return incompatible(fmt::format("required slot {} is null", slot));
  if (table.compile && (!table.executable_destroy || !table.execute))
    return incompatible("compile needs executable_destroy and execute");
  return checkSchema(table).context(origin);
}

/// `values`: what an option's schema allows.
bool isAmong(const std::string& values, const std::string& value) {
  if (values == "string") return true;
  if (values == "int") return text::parseNumber<int64_t>(value).has_value();
  if (values == "float") return text::parseNumber<double>(value).has_value();
  return !value.empty() && text::isOneOf(value, values);
}

Status checkOption(const Plugin& plugin, const std::string& name, const std::string& value) {
  std::string known;
  for (const cdl_option_schema_t& option : plugin.options()) {
    if (name != option.name) {
      known += (known.empty() ? "" : ", ") + std::string(option.name);
      continue;
    }
    const std::string values = option.values ? option.values : "string";
    if (isAmong(values, value)) return Status::ok();
    return badArgument("{}: option {}={}: expected {}", plugin.name(), name, value, values);
  }
  return badArgument("{}: unknown option {}; it has {}", plugin.name(), name,
                     known.empty() ? "none" : known);
}

} // namespace

Status ErrorBuffer::status(cdl_code_t code, std::string_view who) const {
  if (code == CDL_OK) return Status::ok();
  const std::string text(text_, strnlen(text_, sizeof(text_)));
  const Code known = code <= CDL_MISMATCH ? static_cast<Code>(code) : Code::internal;
  std::string message = fmt::format("{}: {}", who, text.empty() ? codeName(known) : text.c_str());
  if (code > CDL_MISMATCH) message += fmt::format(" (unknown code {})", code);
  if (error_.vendor_code) message += fmt::format(" (code {})", error_.vendor_code);
  return {known, std::move(message)};
}

Status thrownBy(std::string_view who, const char* slot) {
  const std::string what =
      who == slot ? fmt::format("{} threw", slot) : fmt::format("{}: {} threw", who, slot);
  try {
    throw;
  } catch (const abi::__forced_unwind&) { // the thread is being ended, which nobody may hold up
    throw;
  } catch (const std::bad_alloc& error) {
    return failure(Code::out_of_memory, "{}: {}", what, error.what());
  } catch (const std::exception& error) {
    return failure(Code::internal, "{}: {}", what, error.what());
  } catch (...) {
    return failure(Code::internal, "{} something that is no std::exception", what);
  }
}

void tellThrownBy(const char* who, const char* slot) noexcept {
  try {
    throw;
  } catch (const std::exception& error) {
    std::string shown;
    try {
      shown = text::shownText(error.what());
    } catch (...) {} // no memory for it: who threw is what counts
    std::fprintf(stderr, "%s: %s threw: %s\n", who, slot, shown.c_str());
  } catch (...) {
    std::fprintf(stderr, "%s: %s threw something that is no std::exception\n", who, slot);
  }
}

Result<std::shared_ptr<Plugin>> Plugin::fromQuery(cdl_backend_query_fn query,
                                                  const std::string& origin) {
  std::shared_ptr<Plugin> plugin(new Plugin);
  plugin->origin_ = origin;
  plugin->table_.header = CDL_HEADER(cdl_plugin_t);
  CDL_TRY(callSlot(origin, Slot{CDL_BACKEND_QUERY_SYMBOL, query}, &host(), &plugin->table_));
  // A plugin that knows a longer table has filled no more than the host's size; one that knows a
  // shorter one left the rest null.
  if (plugin->table_.header.struct_size < sizeof(cdl_plugin_t)) {
    auto* bytes = reinterpret_cast<char*>(&plugin->table_);
    std::memset(bytes + plugin->table_.header.struct_size, 0,
                sizeof(cdl_plugin_t) - plugin->table_.header.struct_size);
  }
  CDL_TRY(checkTable(plugin->table_, origin));
  return plugin;
}

Result<std::shared_ptr<Plugin>> Plugin::load(const std::string& path) {
  std::error_code ignored;
  if (const std::filesystem::path file(path);
      std::filesystem::exists(file, ignored) && !std::filesystem::is_regular_file(file, ignored))
    return failure(Code::not_found, "{}: cannot load the plugin: not a regular file",
                   path); // a pipe would be waited for
  CDL_TRY(checkPluginFile(path));
  // Never closed: threads, thread-local destructors and static objects of a vendor's runtime
  // outlive any handle.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return failure(Code::not_found, "{}: cannot load the plugin: {}", path, dlerror());
  void* symbol = dlsym(library, CDL_BACKEND_QUERY_SYMBOL);
  if (!symbol)
    return failure(Code::incompatible, "{}: not a backend plugin: it does not export {}", path,
                   CDL_BACKEND_QUERY_SYMBOL);
  return fromQuery(reinterpret_cast<cdl_backend_query_fn>(symbol), path);
}

Result<std::shared_ptr<Device>> Plugin::open(uint32_t index, const Options& options) {
  if (index >= table_.device_count)
    return badArgument("{}: device {} of {} does not exist{}", name(), index, table_.device_count,
                       table_.device_count ? "" : ": none was found; is its driver installed?");
  std::vector<cdl_option_t> list;
  for (const auto& [key, value] : options) {
    CDL_TRY(checkOption(*this, key, value));
    list.push_back({key.c_str(), value.c_str()});
  }
  cdl_device_t* handle = nullptr;
  CDL_TRY(callSlot(name(), CDL_SLOT(table_, device_open), &host(), index, list.data(),
                   static_cast<uint32_t>(list.size()), &handle));
  std::shared_ptr<Device> device(new Device(shared_from_this(), index));
  device->options_ = options;
  device->handle_ = handle;
  if (!handle) return failure(Code::internal, "{}: device_open succeeded without a device", name());
  CDL_ASSIGN(const cdl_capabilities_t* capabilities,
             askSlot(name(), CDL_SLOT(table_, device_capabilities), handle));
  if (!capabilities) return failure(Code::internal, "{}: device_capabilities gave nothing", name());
  CDL_ASSIGN(device->target_, capabilities::Target::fromCapabilities(name(), *capabilities, false));
  return device;
}

Device::~Device() {
  if (handle_) endBySlot(table().name, CDL_SLOT(table(), device_close), handle_);
}

std::string Device::name() const {
  if (!table().device_name) return plugin_->name();
  const auto name = askSlot(plugin_->name(), CDL_SLOT(table(), device_name), handle_);
  return name && *name ? *name : plugin_->name();
}

Result<std::shared_ptr<DeviceMemory>> Device::allocate(uint32_t space, uint64_t bytes,
                                                       uint64_t alignment) {
  // a zero-sized buffer is still an address to bind
  const uint64_t size = std::max<uint64_t>(bytes, 1);
  cdl_memory_t* handle = nullptr;
  const Status status = callSlot(plugin_->name(), CDL_SLOT(table(), memory_create), handle_, space,
                                 size, alignment, &handle);
  if (status.code() == Code::out_of_memory && space == 0) shortage_ = allocatedBytes_.load();
  CDL_TRY(status);
  if (!handle)
    return failure(Code::internal, "{}: memory_create succeeded without memory", plugin_->name());
  const auto memory = std::make_shared<DeviceMemory>();
  void* pointer = nullptr;
  if (table().memory_map && callSlot("memory_map", CDL_SLOT(table(), memory_map), handle_, handle,
                                     uint64_t{0}, size, &pointer))
    memory->mapped_ = pointer;
  memory->bytes_ = size;
  memory->alignment_ = alignment;
  countAllocated(size);
  const uint64_t counted = space == 0 ? size : 0;
  allocatedBytes_ += counted;
  memory->handle_ = {
      handle,
      [device = shared_from_this(), mapped = memory->mapped_, size, counted](cdl_memory_t* owned) {
        device->allocatedBytes_ -= counted;
        const cdl_plugin_t& table = device->table();
        cdl_error_t* const nowhere = nullptr;
        if (mapped && table.memory_unmap)
          endBySlot(table.name, CDL_SLOT(table, memory_unmap), device->handle(), owned, mapped,
                    nowhere);
        endBySlot(table.name, CDL_SLOT(table, memory_destroy), device->handle(), owned);
        device->bytesInUse_.fetch_sub(size, std::memory_order_relaxed);
      }};
  return memory;
}

void Device::countAllocated(uint64_t bytes) {
  const uint64_t now = bytesInUse_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  uint64_t most = mostBytesInUse_.load(std::memory_order_relaxed);
  while (most < now && !mostBytesInUse_.compare_exchange_weak(most, now)) {}
}

Result<std::shared_ptr<Queue>> Device::createQueue() {
  cdl_queue_t* handle = nullptr;
  CDL_TRY(callSlot(plugin_->name(), CDL_SLOT(table(), queue_create), handle_, &handle));
  if (!handle)
    return failure(Code::internal, "{}: queue_create succeeded without a queue", plugin_->name());
  const auto queue = std::make_shared<Queue>();
  const auto device = shared_from_this(); // lives as long as its queue
  queue->device_ = device;
  queue->handle_ = {handle, [device](cdl_queue_t* owned) {
                      const cdl_plugin_t& table = device->table();
                      endBySlot(table.name, CDL_SLOT(table, queue_destroy), device->handle(),
                                owned);
                    }};
  return queue;
}

Status Queue::write(const DeviceMemory& to, uint64_t offset, const void* from, uint64_t bytes) {
  if (!bytes) return Status::ok();
  return callSlot("queue_write", CDL_SLOT(device_->table(), queue_write), handle(), to.handle(),
                  offset, from, bytes)
      .context(device_->table().name);
}

Status Queue::read(const DeviceMemory& from, uint64_t offset, void* to, uint64_t bytes) {
  if (!bytes) return Status::ok();
  return callSlot("queue_read", CDL_SLOT(device_->table(), queue_read), handle(), from.handle(),
                  offset, to, bytes)
      .context(device_->table().name);
}

Status Queue::copy(const DeviceMemory& to, uint64_t toOffset, const DeviceMemory& from,
                   uint64_t fromOffset, uint64_t bytes) {
  if (!bytes) return Status::ok();
  return callSlot("queue_copy", CDL_SLOT(device_->table(), queue_copy), handle(), to.handle(),
                  toOffset, from.handle(), fromOffset, bytes)
      .context(device_->table().name);
}

Result<uint64_t> Queue::signal() {
  const uint64_t value = next();
  CDL_TRY(callSlot("queue_signal", CDL_SLOT(device_->table(), queue_signal), handle(), value)
              .context(device_->table().name));
  return value;
}

Status Queue::wait(uint64_t value) {
  return callSlot("queue_wait", CDL_SLOT(device_->table(), queue_wait), handle(), value, UINT64_MAX)
      .context(device_->table().name);
}

Status Queue::drain() {
  CDL_ASSIGN(const uint64_t value, signal());
  return wait(value);
}

Result<std::shared_ptr<DeviceMemory>> Device::allocateWith(const Bytes& bytes, uint32_t space,
                                                           uint64_t alignment) {
  CDL_ASSIGN(std::shared_ptr<DeviceMemory> memory, allocate(space, bytes.size(), alignment));
  CDL_ASSIGN(std::shared_ptr<Queue> queue, createQueue());
  CDL_TRY(queue->write(*memory, 0, bytes.data(), bytes.size()));
  CDL_TRY(queue->drain());
  return memory;
}

Result<std::shared_ptr<DeviceMemory>> Device::upload(const Bytes& bytes, uint32_t space,
                                                     uint64_t alignment) {
  const Hash hash = sha256(bytes.data(), bytes.size());
  const std::string key = fmt::format("{}@{}/{}", hashText(hash), space, alignment);
  const std::lock_guard lock(mutex_);
  if (auto known = uploads_[key].lock()) return known;
  CDL_ASSIGN(std::shared_ptr<DeviceMemory> memory,
             allocateWith(bytes, space, std::max<uint64_t>(alignment, target_->alignment())));
  uploads_[key] = memory;
  return memory;
}

} // namespace candela::runtime::plugin
