// The template as a plugin of two devices that differ: device 0 multiplies no matrices, device 1
// does nothing else.
#include "backends/template/template.hpp"

class Twins : public Template {
public:
  uint32_t deviceCount() override { return 2; }
  cdl::Status open(uint32_t index) override {
    using cdl::Kind;
    for (Kind kind : {Kind::Binary, Kind::Compare, Kind::Select, Kind::Reduce, Kind::MatMul,
                      Kind::Unary, Kind::Rescale, Kind::Table})
      if ((kind == Kind::MatMul) != (index == 1)) support(kind, cdl::Support::EMULATED);
    return Template::open(index);
  }
};
CDL_BACKEND(Twins)
