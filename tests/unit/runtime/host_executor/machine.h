// Runs a small program of soft on arrays.
#pragma once

#include <string>

#include "tests/unit/runtime/host_executor/image_maker.h"
#include "tests/unit/runtime/host_executor/naive.h"
#include "tests/unit/runtime/host_executor/run_image.h"

namespace candela::testing {

using Maker = ImageMaker;

class Machine {
public:
  Maker maker;

  /// A buffer that is `array`, which has to outlive the machine.
  uint32_t buffer(Array& array) {
    pointers_.push_back(array.data());
    return maker.buffer(array.byteSize());
  }
  cdl_view_t dense(Array& array, const Maker::Ints& dims) {
    return Maker::dense(buffer(array), array.elem(), dims);
  }
  cdl_view_t view(Array& array, const Maker::Ints& dims, const Maker::Ints& strides,
                  int64_t offset = 0) {
    return Maker::view(buffer(array), array.elem(), dims, strides, offset);
  }
  /// "" or the error of the program.
  std::string run() {
    const cdl_image_t* image = maker.finish();
    char text[300] = "";
    cdl_error_t error{text, sizeof text, 0};
    const cdl_code_t code = runImage(image, pointers_.data(), &error);
    return code == CDL_OK ? "" : std::to_string(code) + " " + text;
  }

private:
  std::vector<void*> pointers_{nullptr};
};

} // namespace candela::testing
