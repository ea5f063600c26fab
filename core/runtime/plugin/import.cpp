// Memory of the host that a device uses where it lies: of a slot that plugins of version 0.1 lack.
#include "core/runtime/plugin/plugin.h"

namespace candela::runtime::plugin {

Result<bool> Device::import(std::shared_ptr<DeviceMemory>& memory, uint32_t space, void* data,
                            uint64_t bytes) {
  constexpr uintptr_t kAlignment = 16; // of the slot
  if (!table().memory_import || bytes == 0 || reinterpret_cast<uintptr_t>(data) % kAlignment != 0)
    return false;
  cdl_memory_t* handle = memory ? memory->handle() : nullptr;
  ErrorBuffer error;
  cdl_code_t code = CDL_OK;
  try {
    code = table().memory_import(handle_, space, data, bytes, &handle, error.get());
  } catch (...) {
    return thrownBy(plugin_->name(), "memory_import");
  }
  if (code == CDL_UNSUPPORTED) return false;
  if (code != CDL_OK) return error.status(code, plugin_->name());
  if (!handle)
    return failure(Code::internal, "{}: memory_import succeeded without memory", plugin_->name());
  if (!memory) {
    memory = std::make_shared<DeviceMemory>();
    const auto device = shared_from_this(); // lives as long as its memory
    memory->handle_ = {handle, [device](cdl_memory_t* owned) {
                         const cdl_plugin_t& table = device->table();
                         endBySlot(table.name, CDL_SLOT(table, memory_destroy), device->handle(),
                                   owned);
                       }};
  }
  memory->mapped_ = data;
  return true;
}

} // namespace candela::runtime::plugin
