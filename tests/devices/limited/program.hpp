// The device of little memory, through the program API: Programs are run by the template's
// primitives.
#pragma once

#include "tests/devices/limited/memory.hpp"

namespace limited {

/// Bytes of a constant where all lie one behind the other, aligned.
inline uint64_t room(const cdl_image_t* image, uint32_t constant) {
  return (cdl_get_constant(image, constant)->bytes + 63) / 64 * 64;
}

/// Takes what the template takes.
class Programs : public cdl::ProgramBackend {
public:
  explicit Programs(const char* name) : ProgramBackend(name, "0.1.0") {
    using cdl::Kind;
    claim(cdl::Profile::FP32);
    claim(cdl::Profile::INT8);
    for (Kind kind : {Kind::Copy, Kind::Fill, Kind::Convert, Kind::Binary, Kind::Compare,
                      Kind::Select, Kind::Gather, Kind::Scatter, Kind::Reduce, Kind::MatMul,
                      Kind::Unary, Kind::Rescale, Kind::Table}) {
      support(kind, cdl::Support::NATIVE);
      if (kind != Kind::MatMul) capabilities().operandClass(kind, CDL_CLASS_AFFINE);
    }
  }
};

/// Runs a Program whose constants are bound.
class Interpreted : public cdl::Executable {
public:
  explicit Interpreted(const cdl_image_t* image) : image_(image) {}
  cdl::Status execute(const cdl::Addresses& buffers) override {
    static Template primitives;
    return cdl::forEachInstr(image_, [&](uint32_t i, const int64_t* loops) {
      cdl::Timings* timings = buffers.timings();
      const uint64_t start = timings ? cdl::Timings::now() : 0;
      const cdl::Status status = primitives.dispatch(cdl::Op(image_, i, loops, &buffers));
      if (timings && status.isOk()) timings->add(i, start, cdl::Timings::now());
      return status;
    });
  }

protected:
  const cdl_image_t* image_;
};

} // namespace limited
