#include "core/runtime/plugin/check_schema.h"

#include <set>
#include <string>

namespace candela::runtime::plugin {

Status checkSchema(const cdl_plugin_t& table) {
  constexpr uint32_t kMost = 1024; // far above what any honest plugin has
  if (table.option_count > kMost)
    return failure(Code::incompatible, "{} options are more than the limit of {}",
                   table.option_count, kMost);
  if (table.option_count && !table.options) return failure(Code::incompatible, "options are null");
  std::set<std::string> names;
  for (uint32_t i = 0; i < table.option_count; ++i) {
    const char* name = table.options[i].name;
    if (!name || !*name) return failure(Code::incompatible, "option {} has no name", i);
    if (!names.insert(name).second)
      return failure(Code::incompatible, "option {} is there twice", name);
  }
  return Status::ok();
}

} // namespace candela::runtime::plugin
