// The template behind the shim, as a plugin: `candela run --backend libcandela_shim.so --option
// shim=device_lost`.
#include "backends/template/template.hpp"
#include "conformance/mutants/shim.h"

extern "C" CDL_EXPORT cdl_code_t cdl_backend_query(const cdl_host_t* host, cdl_plugin_t* out,
                                                   cdl_error_t* error) {
  candela::conformance::mutants::setShimBase(cdl::detail::Entry<Template>::query);
  return candela::conformance::mutants::shimQuery(host, out, error);
}
