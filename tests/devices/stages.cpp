// The template as a plugin of three devices that do the same, each as fast as its options say.
#include "backends/template/template.hpp"

class Stages : public Template {
public:
  Stages() {
    option("clock_mhz", "of the device", "int", "1000");
    option("link_bytes_per_second", "from and to the host; 0: as the host supposes", "int", "0");
    option("link_latency_ns", "of a value that crosses, before its first byte", "int", "1000");
  }
  uint32_t deviceCount() override { return 3; }
};
CDL_BACKEND(Stages)
