// Giving up work: of an optional slot, by itself so that plugin.cpp is the same with a host that
// has no such slot.
#include "core/runtime/plugin/plugin.h"

namespace candela::runtime::plugin {

bool Queue::cancel() {
  const cdl_plugin_t& table = device_->table();
  return table.cancel && callSlot("cancel", CDL_SLOT(table, cancel), handle()).isOk();
}

} // namespace candela::runtime::plugin
