#pragma once

#include <map>

#include "core/runtime/plugin/plugin.h"
#include "core/support/text/name.h"

namespace candela::conformance {

/// The backend under test, in the process that runs cases. Nothing of it is loaded before something
/// is asked for.
class Port {
public:
  /// "reference", "soft", or a plugin by name or path, with :N for its device N; options of it.
  explicit Port(std::string backend, runtime::plugin::Options options = {});

  const std::string& backend() const { return backend_; }
  const runtime::plugin::Options& options() const { return options_; }
  bool isReference() const { return backend_ == "reference"; }
  /// Which of the plugin's devices is under test.
  uint32_t deviceIndex() const { return name_.index; }

  /// Its one symbol.
  Result<cdl_backend_query_fn> query();
  /// The negotiated table.
  Result<std::shared_ptr<runtime::plugin::Plugin>> plugin();
  /// The device under test, opened once.
  Result<std::shared_ptr<runtime::plugin::Device>> device();
  /// What a graph is compiled for: the device; nothing for the reference.
  Result<std::vector<std::shared_ptr<runtime::plugin::Device>>> devices();

  /// What of the plugin gave no answer in time. It would hang again in each case: from now on each
  /// has this failure.
  void giveUpQuery(Status why) { queryFailure_ = std::move(why); }
  void giveUpDevice(Status why) { deviceFailure_ = std::move(why); }
  /// Success where device_open may be called.
  Status opens() const { return deviceFailure_; }

private:
  Status queryFailure_, deviceFailure_;
  std::string backend_;
  text::DeviceName name_;
  runtime::plugin::Options options_;
  std::shared_ptr<runtime::plugin::Plugin> plugin_;
  std::shared_ptr<runtime::plugin::Device> device_;
};

} // namespace candela::conformance
