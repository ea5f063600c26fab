// What the NPU does itself: the rows of INT8 that its engines have, and convolutions and pools with
// channels last.
#include "capabilities.hpp"

namespace npu_sim {

using cdl::Kind;

namespace {

/// The layouts that convolutions and pools have: channels last, and weights by taps.
struct ImageLayouts {
  uint16_t image, weights;
};

/// Activations of 16 bits: what the engines do with features.int16. Sums of products are exact in
/// 40 bits up to 2^15 terms, and are written as i64; a longer one, one that goes on from i64, and
/// the scaling of i64 by itself are the host's.
void claimInt16(cdl::Capabilities& c, int64_t localBytes, const ImageLayouts& layouts) {
  const auto [image, weights] = layouts;
  constexpr uint8_t I8 = CDL_I8, U8 = CDL_U8, I16 = CDL_I16, I32 = CDL_I32, I64 = CDL_I64,
                    BOOL = CDL_BOOL;
  c.claim(cdl::Profile::INT16);
  const cdl::Atom any = cdl::rank() <= CDL_MAX_RANK;
  c.native(Kind::Copy, 0, {I64, I64}, {0, 0}, {any}, CDL_CLASS_AFFINE);
  for (uint8_t other : {I8, U8, I32}) {
    c.native(Kind::Convert, CDL_CONVERT_TRUNC, {I16, other}, {0, 0}, {any}, CDL_CLASS_AFFINE);
    c.native(Kind::Convert, CDL_CONVERT_TRUNC, {other, I16}, {0, 0}, {any}, CDL_CLASS_AFFINE);
  }
  for (uint16_t fn :
       {CDL_BINARY_ADD, CDL_BINARY_SUB, CDL_BINARY_MUL, CDL_BINARY_MIN, CDL_BINARY_MAX})
    c.native(Kind::Binary, fn, {I16, I16, I16}, {0, 0, 0}, {any}, CDL_CLASS_AFFINE);
  for (uint16_t fn : {CDL_COMPARE_EQ, CDL_COMPARE_LT})
    c.native(Kind::Compare, fn, {I16, I16, BOOL}, {0, 0, 0}, {any}, CDL_CLASS_AFFINE);
  for (uint16_t fn : {CDL_REDUCE_MAX, CDL_REDUCE_MIN})
    c.native(Kind::Reduce, fn, {I16, I16}, {0, 0}, {cdl::dim(1) <= localBytes / 32},
             CDL_CLASS_AFFINE);
  const cdl::Atom mult = cdl::isConst(1), shift = cdl::isConst(2), zero = cdl::isConst(3);
  const auto left = [](uint16_t id, uint8_t elem) {
    if (elem == I32) return cdl::attr(id) <= 7;
    return cdl::attr(id) <= (elem == I16 ? 22 : 30);
  };
  for (uint8_t a : {I8, U8, I32, I16})
    for (uint8_t y : {I8, U8, I16}) {
      if (a == I16 || y == I16)
        c.native(Kind::Rescale, 0, {a, I32, I32, I32, y}, {0, 0, 0, 0, 0},
                 {mult, shift, zero, left(CDL_ATTR_A_LEFT_SHIFT, a)}, CDL_CLASS_BROADCAST);
      for (uint8_t b : {I8, U8, I16})
        if (a != I32 && (a == I16 || b == I16 || y == I16))
          c.native(Kind::Rescale, 0, {a, I32, I32, I32, b, I32, y}, {0, 0, 0, 0, 0, 0, 0},
                   {mult, shift, zero, cdl::isConst(5), left(CDL_ATTR_A_LEFT_SHIFT, a),
                    left(CDL_ATTR_B_LEFT_SHIFT, b)},
                   CDL_CLASS_BROADCAST);
    }
  const cdl::Atom xKnown = cdl::isConst(2), wKnown = cdl::isConst(3),
                  oneZero = cdl::elements(3) == 1;
  const cdl::Atom isFresh = cdl::attr(CDL_ATTR_ACCUMULATE) == 0;
  const cdl::Atom few = cdl::dim(2) <= 32768, fewTaps = cdl::dimProduct(7, 1) <= 32768;
  for (uint8_t y : {I64, I16, I8, U8}) {
    const auto add = [&](Kind kind, std::initializer_list<uint8_t> elems,
                         std::initializer_list<uint16_t> layouts,
                         std::initializer_list<cdl::Atom> atoms) {
      c.native(kind, 0, elems, layouts, atoms,
               kind == Kind::MatMul ? CDL_CLASS_DENSE : CDL_CLASS_ROW_STRIDED);
      if (y == I64) c.withoutEpilogue();
    };
    add(Kind::MatMul, {I16, I8, y}, {0, 0, 0}, {few, isFresh});
    add(Kind::MatMul, {I16, I8, I16, y}, {0, 0, 0, 0}, {xKnown, few, isFresh});
    add(Kind::MatMul, {I16, I8, I16, I8, y}, {0, 0, 0, 0, 0},
        {xKnown, wKnown, oneZero, few, isFresh});
    add(Kind::Conv2d, {I16, I8, y}, {image, weights, image}, {fewTaps, isFresh});
    add(Kind::Conv2d, {I16, I8, I16, y}, {image, weights, 0, image}, {xKnown, fewTaps, isFresh});
    add(Kind::Conv2d, {I16, I8, I16, I8, y}, {image, weights, 0, 0, image},
        {xKnown, wKnown, oneZero, fewTaps, isFresh});
  }
}

/// Floats: what the engines do with features.bf16. Products are of bf16, with sums of f32; what
/// follows them, and all else, is f32, and bf16 is how it is stored.
void claimBf16(cdl::Capabilities& c, int64_t localBytes, const ImageLayouts& layouts) {
  const auto [image, weights] = layouts;
  constexpr uint8_t BF16 = CDL_BF16, F32 = CDL_F32, BOOL = CDL_BOOL;
  const cdl::Atom any = cdl::rank() <= CDL_MAX_RANK;
  const cdl::Atom isFresh = cdl::attr(CDL_ATTR_ACCUMULATE) == 0;
  const cdl::Atom isRounded = cdl::attr(CDL_ATTR_SATURATE) == 0;
  for (uint8_t elem : {BF16, F32}) {
    c.native(Kind::Copy, 0, {elem, elem}, {0, 0}, {any}, CDL_CLASS_AFFINE);
    c.native(Kind::Fill, 0, {elem}, CDL_CLASS_AFFINE);
  }
  for (const auto& [from, to] : {std::pair(BF16, F32), {F32, BF16}})
    c.native(Kind::Convert, CDL_CONVERT_TRUNC, {from, to}, {0, 0}, {any, isRounded},
             CDL_CLASS_AFFINE);
  for (uint16_t fn : {CDL_BINARY_ADD, CDL_BINARY_SUB, CDL_BINARY_MUL, CDL_BINARY_DIV,
                      CDL_BINARY_MIN, CDL_BINARY_MAX})
    c.native(Kind::Binary, fn, {F32, F32, F32}, {0, 0, 0}, {any}, CDL_CLASS_AFFINE);
  for (uint16_t fn : {CDL_COMPARE_EQ, CDL_COMPARE_LT})
    c.native(Kind::Compare, fn, {F32, F32, BOOL}, {0, 0, 0}, {any}, CDL_CLASS_AFFINE);
  for (uint16_t fn : {CDL_REDUCE_SUM, CDL_REDUCE_MAX, CDL_REDUCE_MIN})
    c.native(Kind::Reduce, fn, {F32, F32}, {0, 0}, {cdl::dim(1) <= localBytes / 16},
             CDL_CLASS_AFFINE);
  for (Kind kind : {Kind::Conv2d, Kind::MatMul}) c.epilogue(kind, {Kind::Convert});
  for (uint8_t y : {BF16, F32}) { // f32: with an epilogue that ends there
    c.native(Kind::MatMul, 0, {BF16, BF16, y}, {0, 0, 0}, {isFresh}, CDL_CLASS_DENSE);
    c.native(Kind::Conv2d, 0, {BF16, BF16, y}, {image, weights, image}, {isFresh},
             CDL_CLASS_ROW_STRIDED);
  }
}

/// What the host does for the device, and the kinds that the device does whatever their types.
void claimSupport(cdl::Capabilities& c) {
  for (Kind kind : {Kind::Convert, Kind::Binary, Kind::Compare, Kind::Select, Kind::Gather,
                    Kind::Scatter, Kind::Reduce, Kind::Rescale, Kind::MatMul})
    c.support(kind, cdl::Support::EMULATED);
  for (Kind kind : {Kind::Copy, Kind::Fill, Kind::Table}) c.support(kind, cdl::Support::NATIVE);
  for (Kind kind : {Kind::Fill, Kind::Table, Kind::Rescale}) c.operandClass(kind, CDL_CLASS_AFFINE);
  c.operandClass(Kind::MatMul, CDL_CLASS_ROW_STRIDED);
  c.byColumns(); // the array loads weights as they lie
}

/// Conversions, arithmetic and comparisons of the vector engine.
void claimElementwise(cdl::Capabilities& c) {
  constexpr uint8_t I8 = CDL_I8, U8 = CDL_U8, I32 = CDL_I32, BOOL = CDL_BOOL;
  // What a kind has natively stands beside its EMULATED rows, which are for all ranks too.
  const cdl::Atom any = cdl::rank() <= CDL_MAX_RANK;
  for (uint8_t byte : {I8, U8}) {
    c.native(Kind::Convert, CDL_CONVERT_TRUNC, {byte, I32}, {0, 0}, {any}, CDL_CLASS_AFFINE);
    c.native(Kind::Convert, CDL_CONVERT_TRUNC, {I32, byte}, {0, 0}, {any}, CDL_CLASS_AFFINE);
    c.native(Kind::Convert, CDL_CONVERT_TRUNC, {byte, BOOL}, {0, 0}, {any}, CDL_CLASS_AFFINE);
    c.native(Kind::Convert, CDL_CONVERT_TRUNC, {BOOL, byte}, {0, 0}, {any}, CDL_CLASS_AFFINE);
  }
  c.native(Kind::Convert, CDL_CONVERT_TRUNC, {I32, BOOL}, {0, 0}, {any}, CDL_CLASS_AFFINE);
  c.native(Kind::Convert, CDL_CONVERT_TRUNC, {BOOL, I32}, {0, 0}, {any}, CDL_CLASS_AFFINE);
  for (uint16_t fn :
       {CDL_BINARY_ADD, CDL_BINARY_SUB, CDL_BINARY_MUL, CDL_BINARY_MIN, CDL_BINARY_MAX})
    c.native(Kind::Binary, fn, {I32, I32, I32}, {0, 0, 0}, {any}, CDL_CLASS_AFFINE);
  for (uint16_t fn : {CDL_COMPARE_EQ, CDL_COMPARE_LT})
    for (uint8_t elem : {I8, U8, I32})
      c.native(Kind::Compare, fn, {elem, elem, BOOL}, {0, 0, 0}, {any}, CDL_CLASS_AFFINE);
}

/// Reductions of which all that becomes one element lies in the scratchpad, beside what comes next.
void claimReductions(cdl::Capabilities& c, int64_t localBytes) {
  constexpr uint8_t I8 = CDL_I8, U8 = CDL_U8, I32 = CDL_I32;
  const cdl::Atom fits = cdl::dim(1) <= localBytes / 16;
  for (uint16_t fn : {CDL_REDUCE_SUM, CDL_REDUCE_MAX, CDL_REDUCE_MIN})
    c.native(Kind::Reduce, fn, {I32, I32}, {0, 0}, {fits}, CDL_CLASS_AFFINE);
  for (uint16_t fn : {CDL_REDUCE_MAX, CDL_REDUCE_MIN})
    for (uint8_t byte : {I8, U8})
      c.native(Kind::Reduce, fn, {byte, byte}, {0, 0}, {fits}, CDL_CLASS_AFFINE);
}

/// RESCALE of one operand and of two. Scales are numbers in descriptors and records, so they have
/// to be constants.
void claimRescales(cdl::Capabilities& c) {
  constexpr uint8_t I8 = CDL_I8, U8 = CDL_U8, I32 = CDL_I32;
  const cdl::Atom mult = cdl::isConst(1), shift = cdl::isConst(2), zero = cdl::isConst(3);
  for (uint8_t y : {I8, U8})
    for (uint8_t a : {I8, U8, I32}) {
      c.native(Kind::Rescale, 0, {a, I32, I32, I32, y}, {0, 0, 0, 0, 0},
               {mult, shift, zero, cdl::attr(CDL_ATTR_A_LEFT_SHIFT) <= (a == I32 ? 7 : 30)},
               CDL_CLASS_BROADCAST);
      if (a == I32) continue;
      for (uint8_t b : {I8, U8})
        c.native(Kind::Rescale, 0, {a, I32, I32, I32, b, I32, y}, {0, 0, 0, 0, 0, 0, 0},
                 {mult, shift, zero, cdl::isConst(5), cdl::attr(CDL_ATTR_A_LEFT_SHIFT) <= 30,
                  cdl::attr(CDL_ATTR_B_LEFT_SHIFT) <= 30},
                 CDL_CLASS_BROADCAST);
    }
}

/// Products of 8 bits by 8 bits: sums of 32 bits, or bytes behind an epilogue.
void claimProducts(cdl::Capabilities& c, const ImageLayouts& layouts) {
  constexpr uint8_t I8 = CDL_I8, U8 = CDL_U8, I32 = CDL_I32;
  const auto [image, weights] = layouts;
  for (Kind kind : {Kind::Conv2d, Kind::MatMul}) c.epilogue(kind, {Kind::Binary, Kind::Rescale});
  const cdl::Atom xKnown = cdl::isConst(2), wKnown = cdl::isConst(3),
                  oneZero = cdl::elements(3) == 1;
  for (uint8_t x : {I8, U8})
    for (uint8_t y : {I32, I8, U8}) {
      c.native(Kind::MatMul, 0, {x, I8, y}, {0, 0, 0}, {cdl::dim(2) <= 65536}, CDL_CLASS_DENSE);
      c.native(Kind::MatMul, 0, {x, I8, x, y}, {0, 0, 0, 0}, {xKnown, cdl::dim(2) <= 65536},
               CDL_CLASS_DENSE);
      c.native(Kind::MatMul, 0, {x, I8, x, I8, y}, {0, 0, 0, 0, 0},
               {xKnown, wKnown, oneZero, cdl::dim(2) <= 65536}, CDL_CLASS_DENSE);
    }
  c.limit(Kind::Conv2d,
          {cdl::attr(CDL_ATTR_TRANSPOSED) == 0, cdl::dim(0, 1) <= 32, cdl::dim(1, 1) <= 32,
           cdl::attr(CDL_ATTR_STRIDES, 0) <= 16, cdl::attr(CDL_ATTR_STRIDES, 1) <= 16,
           cdl::attr(CDL_ATTR_DILATIONS, 0) <= 32, cdl::attr(CDL_ATTR_DILATIONS, 1) <= 32,
           cdl::attr(CDL_ATTR_PADS, 0) <= 63, cdl::attr(CDL_ATTR_PADS, 1) <= 63});
  for (uint8_t x : {I8, U8})
    for (uint8_t y : {I32, I8, U8}) {
      c.native(Kind::Conv2d, 0, {x, I8, y}, {image, weights, image}, {});
      c.native(Kind::Conv2d, 0, {x, I8, x, y}, {image, weights, 0, image}, {xKnown});
      c.native(Kind::Conv2d, 0, {x, I8, x, I8, y}, {image, weights, 0, 0, image},
               {xKnown, wKnown, oneZero});
    }
}

/// Pools as far as a descriptor says windows and images.
void claimPool(cdl::Capabilities& c, uint8_t elem, uint16_t image) {
  c.native(Kind::Pool2d, CDL_POOL2D_MAX, {elem, elem}, {image, image},
           {cdl::attr(CDL_ATTR_DILATIONS, 0) == 1, cdl::attr(CDL_ATTR_DILATIONS, 1) == 1,
            cdl::attr(CDL_ATTR_KERNEL, 0) <= 256, cdl::attr(CDL_ATTR_KERNEL, 1) <= 256,
            cdl::attr(CDL_ATTR_PADS, 0) <= 63, cdl::attr(CDL_ATTR_PADS, 1) <= 63,
            cdl::attr(CDL_ATTR_STRIDES, 0) <= 256, cdl::attr(CDL_ATTR_STRIDES, 1) <= 256,
            cdl::dim(1) <= 4096, cdl::dim(2) <= 4096,
            cdl::dim(3) <= 65535 / static_cast<int64_t>(cdl_elem_bits(elem) / 8)});
}

} // namespace

void claimAll(cdl::Capabilities& c, int64_t localBytes, const npu::Configuration& configuration) {
  c.claim(cdl::Profile::INT8);
  claimSupport(c);
  claimElementwise(c);
  claimReductions(c, localBytes);
  claimRescales(c);
  const uint16_t image = c.layout("nchw", "n,h,w,c"), weights = c.layout("oikl", "k,l,i,o");
  claimProducts(c, {image, weights});
  if (configuration.hasInt16()) claimInt16(c, localBytes, {image, weights});
  if (configuration.hasBf16()) claimBf16(c, localBytes, {image, weights});
  for (uint8_t elem : {CDL_I8, CDL_U8}) claimPool(c, elem, image);
  if (configuration.hasInt16()) claimPool(c, CDL_I16, image);
  if (configuration.hasBf16())
    for (uint8_t elem : {CDL_BF16, CDL_F32}) claimPool(c, elem, image);
}

} // namespace npu_sim
