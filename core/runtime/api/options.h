#pragma once

#include <candela/candela.h>

#include "core/compiler/driver/pipeline.h"
#include "core/compiler/import/import.h"

/// What a caller says of how to compile.
namespace candela::runtime::api {

/// The options in the caller's words, checked.
struct CompileRequest {
  std::vector<std::string> backends;
  std::vector<std::shared_ptr<runtime::plugin::Device>> devices; ///< in their place
  import::ImportOptions import;
  std::map<std::string, runtime::plugin::Options> options; ///< by backend; "" is for all
  uint32_t flags = 0;
  std::vector<std::string> states;
  driver::CompileOptions compile;
};

/// Failure: invalid_argument, with the option that is wrong. NULL: what is usual.
Result<CompileRequest> parseOptions(const candela_options_t* given);
/// The devices of the request, those that are named opened; soft and the reference are none.
/// Failures: not_found; invalid_argument for an option that is for none of them; a backend's.
Result<std::vector<std::shared_ptr<runtime::plugin::Device>>>
openDevices(const CompileRequest& request);
/// `require_native`. Failure: refused, with all nodes that are not native.
Status requireNative(const runtime::bundle::Bundle& bundle);

} // namespace candela::runtime::api
