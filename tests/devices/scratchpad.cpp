// A device that computes on 8 KB of local memory, and takes dense operands alone: images with
// channels last, matrices, and what is done element by element.
#include "backends/template/template.hpp"

#include <cstdlib>

class Scratchpad : public Template {
public:
  Scratchpad() {
    using cdl::Kind;
    const uint16_t image = layout("nchw", "n,h,w,c"), weights = layout("oihw", "h,w,i,o");
    native(Kind::Conv2d, 0, {CDL_F32, CDL_F32, CDL_F32}, {image, weights, image},
           {cdl::attr(CDL_ATTR_GROUP) == 1, cdl::attr(CDL_ATTR_TRANSPOSED) == 0}, CDL_CLASS_DENSE);
    for (Kind kind : {Kind::Binary, Kind::Unary})
      capabilities().operandClass(kind, CDL_CLASS_DENSE);
    option("pad", "bytes of local memory", "int", "8192");
  }
  cdl::Status open(uint32_t index) override {
    space("dram", 0, 0, 64);
    space("pad", CDL_SPACE_LOCAL, std::strtoull(options().get("pad").c_str(), nullptr, 10), 64);
    return Template::open(index);
  }
  bool memoryMappable() const override { return false; }

  cdl::Status conv2d(const cdl::Conv2d& op) override {
    const auto x = op.x<const float>(), w = op.w<const float>();
    const auto y = op.y<float>();
    for (int64_t n : y.range(0))
      for (int64_t oh : y.range(1))
        for (int64_t ow : y.range(2))
          for (int64_t o : y.range(3)) {
            float sum = op.accumulate() ? y(n, oh, ow, o) : 0;
            for (int64_t kh : w.range(0))
              for (int64_t kw : w.range(1)) {
                const int64_t h = oh * op.stride(0) + kh * op.dilation(0) - op.padBegin(0);
                const int64_t v = ow * op.stride(1) + kw * op.dilation(1) - op.padBegin(1);
                if (h < 0 || v < 0 || h >= x.dim(1) || v >= x.dim(2)) continue;
                for (int64_t i : x.range(3)) sum += x(n, h, v, i) * w(kh, kw, i, o);
              }
            y(n, oh, ow, o) = sum;
          }
    return cdl::ok();
  }
};
CDL_BACKEND(Scratchpad)
