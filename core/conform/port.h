#pragma once

#include <map>

#include "core/runtime/plugin/plugin.h"

namespace candela::conform {

/// The backend under test, in the process that runs cases. Nothing of it is loaded before something is asked for.
class Port {
public:
  /// "reference", "soft", or a plugin by name or path; options of its device.
  explicit Port(std::string backend, runtime::Options options = {});

  const std::string& backend() const { return backend_; }
  const runtime::Options& options() const { return options_; }
  bool isReference() const { return backend_ == "reference"; }

  /// Its one symbol.
  Result<cdl_backend_query_fn> query();
  /// The negotiated table.
  Result<std::shared_ptr<runtime::Plugin>> plugin();
  /// Its first device, opened once.
  Result<std::shared_ptr<runtime::Device>> device();
  /// What a graph is compiled for: the device; nothing for the reference.
  Result<std::vector<std::shared_ptr<runtime::Device>>> devices();

private:
  std::string backend_;
  runtime::Options options_;
  std::shared_ptr<runtime::Plugin> plugin_;
  std::shared_ptr<runtime::Device> device_;
};

} // namespace candela::conform
