/* A plugin in plain C as it was before executable_scratch and all that came after it were added to
 * the table: it must work with a newer host. It has one device without rows, and nothing runs on
 * it. */
#include "candela/cdl.h"

static cdl_capabilities_t capabilities;
static cdl_space_t space = {0, CDL_SPACE_HOST_MAPPED, 0, 64, 0};
static const char* const space_names[] = {"host"};

static cdl_code_t device_open(const cdl_host_t* host, uint32_t index, const cdl_option_t* options,
                              uint32_t option_count, cdl_device_t** device, cdl_error_t* error) {
  (void)host, (void)index, (void)options, (void)option_count, (void)error;
  *device = (cdl_device_t*)&capabilities;
  return CDL_OK;
}
static void device_close(cdl_device_t* device) { (void)device; }
static const cdl_capabilities_t* device_capabilities(cdl_device_t* device) {
  (void)device;
  capabilities.header.struct_size = sizeof capabilities;
  capabilities.profiles = 1u << CDL_PROFILE_BASE | 1u << CDL_PROFILE_FP32;
  capabilities.spaces = &space;
  capabilities.space_count = 1;
  capabilities.space_stride = sizeof space;
  capabilities.space_names = space_names;
  capabilities.engine_count = 1;
  return &capabilities;
}
static cdl_code_t no_run(cdl_queue_t* queue, const cdl_image_t* image, uint32_t first,
                         uint32_t count, const int64_t loop_values[CDL_MAX_LOOP_NESTING],
                         const cdl_bindings_t* bindings, cdl_error_t* error) {
  (void)queue, (void)image, (void)first, (void)count, (void)loop_values, (void)bindings;
  return cdl_set_error(error, CDL_UNSUPPORTED, "old_plugin runs nothing");
}

CDL_EXPORT cdl_code_t cdl_backend_query(const cdl_host_t* host, cdl_plugin_t* out,
                                        cdl_error_t* error);

CDL_EXPORT cdl_code_t cdl_backend_query(const cdl_host_t* host, cdl_plugin_t* out,
                                        cdl_error_t* error) {
  const size_t known = offsetof(cdl_plugin_t, executable_scratch);
  cdl_plugin_t table;
  if (host->header.major != CDL_ABI_MAJOR || out->header.struct_size < known)
    return cdl_set_error(error, CDL_INCOMPATIBLE,
                         "old_plugin needs a host of ABI 0.x with its whole table");
  memset(&table, 0, sizeof table);
  table.header.struct_size = (uint16_t)known;
  table.header.minor = CDL_ABI_MINOR;
  table.device_count = 1;
  table.name = "old_plugin";
  table.version = "0.0.1";
  table.device_open = device_open;
  table.device_close = device_close;
  table.device_capabilities = device_capabilities;
  table.run = no_run;
  memcpy(out, &table, known);
  return CDL_OK;
}
