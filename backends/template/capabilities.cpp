// What this backend says of itself: profiles, support, and where it takes more than is required.
#include "template.hpp"

Template::Template() : PrimitiveBackend(TEMPLATE_NAME, "0.1.0") {
  describe("the backend to copy: plain loops over host memory");
  claim(cdl::Profile::FP32); // BASE comes with it
  claim(cdl::Profile::INT8);

  support(cdl::Kind::Copy, copySupport);
  support(cdl::Kind::Fill, fillSupport);
  support(cdl::Kind::Convert, convertSupport);
  support(cdl::Kind::Binary, binarySupport);
  support(cdl::Kind::Compare, compareSupport);
  support(cdl::Kind::Select, selectSupport);
  support(cdl::Kind::Gather, gatherSupport);
  support(cdl::Kind::Scatter, scatterSupport);
  support(cdl::Kind::Reduce, reduceSupport);
  support(cdl::Kind::MatMul, matMulSupport);
  support(cdl::Kind::Unary, unarySupport);
  support(cdl::Kind::Rescale, rescaleSupport);
  support(cdl::Kind::Table, tableSupport);

  // The loops step through any strides; only MATMUL wants its rows contiguous.
  for (cdl::Kind kind : {cdl::Kind::Fill, cdl::Kind::Convert, cdl::Kind::Binary, cdl::Kind::Compare, cdl::Kind::Select,
                         cdl::Kind::Gather, cdl::Kind::Scatter, cdl::Kind::Reduce, cdl::Kind::Unary, cdl::Kind::Rescale,
                         cdl::Kind::Table})
    capabilities().operandClass(kind, CDL_CLASS_AFFINE);
}
