#pragma once

#include <map>
#include <string>

#include "candela/cdl.h"

namespace candela::conformance::mutants {

/// core/runtime/host_executor as a plugin, through the same interfaces as a vendor's: the backend
/// `soft` under test, and the base of the faulty ones. Its options:
///   fault  a fault to have, by name (fault.h)
///   door   run (default) or compile
cdl_code_t softQuery(const cdl_host_t* host, cdl_plugin_t* out, cdl_error_t* error);
/// The same for these options, some of which show in the table itself. One fault of a table at a
/// time in a process.
cdl_backend_query_fn softQueryFor(const std::map<std::string, std::string>& options);

} // namespace candela::conformance::mutants
