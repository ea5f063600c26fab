#pragma once

#include "core/runtime/plugin/plugin.h"
#include "tests/unit/compiler/capabilities/tables.h"

/// A plugin of one device that does nothing but say costs, with a scratchpad to tile for.
namespace candela::driver::priced_device {

template <typename... Arguments> cdl_code_t refuse(Arguments...) { return CDL_UNSUPPORTED; }
template <typename... Arguments> void nothing(Arguments...) {}

inline cdl_code_t openDevice(const cdl_host_t*, uint32_t, const cdl_option_t*, uint32_t,
                             cdl_device_t** device, cdl_error_t*) {
  static char opened;
  *device = reinterpret_cast<cdl_device_t*>(&opened);
  return CDL_OK;
}

inline const cdl_capabilities_t* capabilities(cdl_device_t*) {
  static capabilities::Table table = [] {
    capabilities::Table made = capabilities::Table::required({CDL_PROFILE_BASE, CDL_PROFILE_FP32});
    made.spaces.push_back({0, CDL_SPACE_LOCAL, 16 << 10, 64, 0});
    made.spaceNames = {"memory", "scratchpad"};
    made.view();
    return made;
  }();
  return &table.table;
}

/// Everything but cost_batch and the options.
inline void fill(cdl_plugin_t& out) {
  out.header = CDL_HEADER(cdl_plugin_t);
  out.min_host_major = CDL_ABI_MAJOR;
  out.device_count = 1;
  out.name = "priced";
  out.version = "1";
  out.device_open = openDevice;
  out.device_close = nothing;
  out.device_capabilities = capabilities;
  out.memory_create = refuse;
  out.memory_destroy = nothing;
  out.queue_create = refuse;
  out.queue_destroy = nothing;
  out.queue_write = refuse;
  out.queue_read = refuse;
  out.queue_copy = refuse;
  out.queue_signal = refuse;
  out.queue_wait = refuse;
  out.run = refuse;
}

} // namespace candela::driver::priced_device
