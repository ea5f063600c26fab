// A plugin that fails where the option `fault` says:
//   open   device_open answers CDL_DEVICE_LOST with vendor code 7
//   run    every instruction that it claims NATIVE answers CDL_INTERNAL with vendor code 42
//   throw  they throw a std::runtime_error, `int` they throw an int, `memory` a std::bad_alloc
// Without it, it works: FILL, COPY and MATMUL are NATIVE and leave their results undefined.
#include <candela/backend.hpp>

class Faulty : public cdl::PrimitiveBackend {
public:
  Faulty() : PrimitiveBackend("faulty", "0.1.0") {
    claim(cdl::Profile::FP32);
    option("fault", "where it fails", "none|open|run|throw|int|memory", "none");
  }
  cdl::Status open(uint32_t) override {
    fault_ = options().get("fault");
    return fault_ == "open" ? cdl::error(CDL_DEVICE_LOST, "the device does not answer", 7)
                            : cdl::ok();
  }
  cdl::Status fill(const cdl::Fill&) override { return fail(); }
  cdl::Status copy(const cdl::Copy&) override { return fail(); }
  cdl::Status matMul(const cdl::MatMul&) override { return fail(); }

private:
  cdl::Status fail() const {
    if (fault_ == "run") return cdl::error(CDL_INTERNAL, "the kernel failed", 42);
    if (fault_ == "throw") throw std::runtime_error("the kernel threw");
    if (fault_ == "int") throw 1;
    if (fault_ == "memory") throw std::bad_alloc();
    return cdl::ok();
  }
  std::string fault_;
};
CDL_BACKEND(Faulty)
