#include "conformance/port.h"

#include <dlfcn.h>

#include "conformance/mutants/soft_port.h"

namespace candela::conformance {

Port::Port(std::string backend, runtime::plugin::Options options)
    : backend_(std::move(backend)), name_(text::parseDeviceName(backend_)),
      options_(std::move(options)) {}

Result<cdl_backend_query_fn> Port::query() {
  if (backend_ == "soft") return mutants::softQueryFor(options_);
  CDL_ASSIGN(const std::shared_ptr<runtime::plugin::Plugin> loaded, plugin());
  // Shared libraries are never closed: this is the one that the plugin was loaded from.
  void* library = dlopen(loaded->origin().c_str(), RTLD_NOW | RTLD_LOCAL);
  void* symbol = library ? dlsym(library, CDL_BACKEND_QUERY_SYMBOL) : nullptr;
  if (!symbol)
    return failure(Code::not_found, "{}: {} is not to be found", loaded->origin(),
                   CDL_BACKEND_QUERY_SYMBOL);
  return reinterpret_cast<cdl_backend_query_fn>(symbol);
}

Result<std::shared_ptr<runtime::plugin::Plugin>> Port::plugin() {
  CDL_TRY(queryFailure_);
  if (plugin_) return plugin_;
  CDL_ASSIGN(plugin_, backend_ == "soft" ? runtime::plugin::Plugin::fromQuery(
                                               mutants::softQueryFor(options_), backend_)
                                         : runtime::plugin::findPlugin(name_.backend));
  return plugin_;
}

Result<std::shared_ptr<runtime::plugin::Device>> Port::device() {
  CDL_TRY(deviceFailure_);
  if (device_) return device_;
  CDL_ASSIGN(const std::shared_ptr<runtime::plugin::Plugin> loaded, plugin());
  CDL_ASSIGN(device_, loaded->open(name_.index, options_));
  return device_;
}

Result<std::vector<std::shared_ptr<runtime::plugin::Device>>> Port::devices() {
  std::vector<std::shared_ptr<runtime::plugin::Device>> devices;
  if (isReference()) return devices;
  CDL_ASSIGN(devices.emplace_back(), device());
  return devices;
}

} // namespace candela::conformance
