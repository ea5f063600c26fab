// Executables without constants: the host binds them.
#include "tests/devices/limited/program.hpp"

class LimitedProgram : public limited::Device<limited::Programs> {
public:
  LimitedProgram() : Device("limited_program") {}
  cdl::Status compile(const cdl_image_t* image, const void* const*,
                      std::unique_ptr<cdl::Executable>& executable) override {
    executable = std::make_unique<limited::Interpreted>(image);
    return cdl::ok();
  }
};
CDL_BACKEND(LimitedProgram)
