#pragma once

#include <string>
#include <vector>

#include "core/support/status.h"

namespace candela::runtime::plugin {

/// Names of the functions and objects that a shared library exports, sorted, as its file says: no
/// code of it runs.
/// Failure: bad_model.
Result<std::vector<std::string>> exportedSymbols(const std::string& path);

/// Whether dlopen may run the library's constructors: it is whole, and exports cdl_backend_query.
/// What is no library at all passes, as dlopen says best what it is. Failure: not_found or
/// incompatible.
Status checkPluginFile(const std::string& path);

} // namespace candela::runtime::plugin
