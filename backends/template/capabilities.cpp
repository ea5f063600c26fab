// What this backend says of itself: profiles, switches, and where it takes more than is required.
#include "template.hpp"

// What the switches say unless told otherwise, and the kinds that
// -DTEMPLATE_EMULATED=cdl::Kind::MatMul,... turns off.
#ifndef TEMPLATE_DEFAULT
#define TEMPLATE_DEFAULT NATIVE
#endif
#ifndef TEMPLATE_EMULATED
#define TEMPLATE_EMULATED
#endif
#ifndef TEMPLATE_NAME
#define TEMPLATE_NAME "template"
#endif

Template::Template() : PrimitiveBackend(TEMPLATE_NAME, "0.1.0") {
  using cdl::Kind, cdl::Support;
  describe("the backend to copy: plain loops over host memory");
  claim(cdl::Profile::FP32); // BASE comes with it
  claim(cdl::Profile::INT8);

  // The switches. What differs from the default has a line of its own below the loop.
  for (Kind kind : {Kind::Copy, Kind::Fill, Kind::Convert, Kind::Binary, Kind::Compare,
                    Kind::Select, Kind::Gather, Kind::Scatter, Kind::Reduce, Kind::MatMul,
                    Kind::Unary, Kind::Rescale, Kind::Table}) {
    support(kind, Support::TEMPLATE_DEFAULT);
    // The loops step through any strides; only MATMUL wants its rows contiguous.
    if (kind != Kind::MatMul) capabilities().operandClass(kind, CDL_CLASS_AFFINE);
  }
  for (Kind kind : std::vector<Kind>{TEMPLATE_EMULATED}) support(kind, Support::EMULATED);
}
