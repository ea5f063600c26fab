// A plugin that never answers: in its query or in device_open, as CANDELA_TEST_HANG says; otherwise
// it works.
#include <candela/backend.hpp>

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace {

void hangIn(std::string_view place) {
  const char* const wanted = std::getenv("CANDELA_TEST_HANG");
  while (wanted && place == wanted) pause();
}

class Hanging : public cdl::PrimitiveBackend {
public:
  Hanging() : PrimitiveBackend("hanging", "0.1.0") { claim(cdl::Profile::FP32); }
  cdl::Status open(uint32_t) override {
    hangIn("open");
    return cdl::ok();
  }
  cdl::Status fill(const cdl::Fill&) override { return cdl::ok(); }
  cdl::Status copy(const cdl::Copy&) override { return cdl::ok(); }
};

} // namespace

extern "C" CDL_EXPORT cdl_code_t cdl_backend_query(const cdl_host_t* host, cdl_plugin_t* out,
                                                   cdl_error_t* error) {
  hangIn("query");
  return cdl::detail::Entry<Hanging>::query(host, out, error);
}
