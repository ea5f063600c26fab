#include "backend.hpp"
#include "limits.hpp"

namespace cpu {

using cdl::Kind;

namespace {

cdl::Atom isForward() { return cdl::attr(CDL_ATTR_TRANSPOSED) == 0; }

/// Float convolutions, pools and products on blocks of 16 channels, and where blocks begin and end.
void claimBlocked(cdl::Capabilities& c) {
  constexpr uint8_t F32 = CDL_F32;
  const uint16_t image = c.layout("nchw", "n,c/16,h,w,c%16");
  const uint16_t weights = c.layout("oikl", "o/16,i/16,k,l,i%16,o%16");
  const uint16_t narrow = c.layout("oikl", "o/16,k,l,i,o%16");
  const uint16_t columns = c.layout("bkn", "b,n/16,k,n%16");
  const cdl::Atom ungrouped = cdl::attr(CDL_ATTR_GROUP) == 1, packed = cdl::isConst(1),
                  forward = isForward();
  c.native(Kind::Conv2d, 0, {F32, F32, F32}, {image, weights, image}, {ungrouped, packed, forward});
  c.native(Kind::Conv2d, 0, {F32, F32, F32}, {image, narrow, image},
           {cdl::dim(3, 1) == 1, packed, forward}); // depthwise
  c.native(Kind::Conv2d, 0, {F32, F32, F32}, {0, narrow, image}, {ungrouped, packed, forward});
  c.native(Kind::Conv2d, 0, {F32, F32, F32}, {image, weights, 0}, {ungrouped, packed, forward});
  for (uint16_t fn : {CDL_POOL2D_MAX, CDL_POOL2D_AVERAGE})
    c.native(Kind::Pool2d, fn, {F32, F32}, {image, image});
  for (uint8_t y : {F32, uint8_t(CDL_I8), uint8_t(CDL_U8)}) // with an epilogue that ends there
    c.native(Kind::MatMul, 0, {F32, F32, y}, {0, columns, 0}, {packed}, CDL_CLASS_DENSE);
}

/// Convolutions and pools of 8 bits with channels last: beside the weights (in fours of input
/// channels, or as they come for a depthwise one and for one that begins with few channels) stands
/// at most a constant zero point of x.
void claimLast(cdl::Capabilities& c) {
  constexpr uint8_t I8 = CDL_I8;
  const uint16_t image = c.layout("nchw", "n,h,w,c");
  const uint16_t weights = c.layout("oikl", "o/16,k,l,i/4,o%16,i%4");
  const cdl::Atom ungrouped = cdl::attr(CDL_ATTR_GROUP) == 1, packed = cdl::isConst(1),
                  known = cdl::isConst(2);
  const cdl::Atom forward = isForward();
  for (uint8_t x : {CDL_I8, CDL_U8}) {
    // bytes: with an epilogue that ends there
    for (uint8_t y : {uint8_t(CDL_I32), uint8_t(CDL_I8), uint8_t(CDL_U8)}) {
      c.native(Kind::Conv2d, 0, {x, I8, y}, {image, weights, image},
               {ungrouped, packed, cdl::dim(3) % 4 == 0, forward});
      c.native(Kind::Conv2d, 0, {x, I8, x, y}, {image, weights, 0, image},
               {ungrouped, packed, known, cdl::dim(3) % 4 == 0, forward});
      // depthwise
      c.native(Kind::Conv2d, 0, {x, I8, y}, {image, 0, image},
               {packed, cdl::dim(1, 1) == 1, forward});
      c.native(Kind::Conv2d, 0, {x, I8, x, y}, {image, 0, 0, image},
               {packed, known, cdl::dim(1, 1) == 1, forward});
      c.native(Kind::Conv2d, 0, {x, I8, y}, {0, 0, image}, {ungrouped, packed, forward});
      c.native(Kind::Conv2d, 0, {x, I8, x, y}, {0, 0, 0, image},
               {ungrouped, packed, known, forward});
    }
    c.native(Kind::Pool2d, CDL_POOL2D_MAX, {x, x}, {image, image});
  }
}

/// Steps of expressions, wherever a kernel can end with them; TABLE stays an instruction.
void claimExpressions(cdl::Capabilities& c) {
  const std::initializer_list<Kind> steps = {Kind::Convert, Kind::Binary, Kind::Compare,
                                             Kind::Select,  Kind::Unary,  Kind::Rescale};
  for (Kind kind : {Kind::Conv2d, Kind::Pool2d, Kind::MatMul, Kind::ScaledMatMul, Kind::Reduce,
                    Kind::Elementwise})
    c.epilogue(kind, steps);
  c.prologue(Kind::Reduce);
  c.native(Kind::Elementwise, 0, {}, CDL_CLASS_AFFINE);
}

/// Float convolutions, also transposed ones, on images as they come and in layouts.
void claimConvolutions(cdl::Capabilities& c) {
  constexpr uint8_t F32 = CDL_F32;
  c.limit(Kind::Conv2d, {cdl::attr(CDL_ATTR_ACCUMULATE) == 0});
  c.native(Kind::Conv2d, 0, {F32, F32, F32}, {0, 0, 0}, {isForward()}, CDL_CLASS_DENSE);
  c.native(Kind::Conv2d, 0, {F32, F32, F32}, {0, 0, 0},
           {cdl::attr(CDL_ATTR_TRANSPOSED) == 1, cdl::attr(CDL_ATTR_DILATIONS, 0) == 1,
            cdl::attr(CDL_ATTR_DILATIONS, 1) == 1},
           CDL_CLASS_DENSE);
  claimBlocked(c);
  claimLast(c);
}

/// Integer convolutions on images as they come, and integer matrix products.
void claimIntegerProducts(cdl::Capabilities& c) {
  constexpr uint8_t I32 = CDL_I32;
  for (uint8_t elem : {CDL_I8, CDL_U8}) {
    const cdl::Atom known = cdl::isConst(2); // what the padding is made of
    for (uint8_t y : {I32, uint8_t(CDL_I8), uint8_t(CDL_U8)}) {
      c.native(Kind::Conv2d, 0, {elem, CDL_I8, y}, {0, 0, 0}, {isForward()}, CDL_CLASS_DENSE);
      c.native(Kind::Conv2d, 0, {elem, CDL_I8, elem, y}, {0, 0, 0, 0}, {isForward(), known},
               CDL_CLASS_DENSE);
    }
    c.native(Kind::Conv2d, 0, {elem, CDL_I8, elem, CDL_I8, I32}, {0, 0, 0, 0, 0},
             {isForward(), known}, CDL_CLASS_DENSE);
    c.native(Kind::MatMul, 0, {elem, CDL_I8, elem, I32});
    c.native(Kind::MatMul, 0, {elem, CDL_I8, elem, CDL_I8, I32});
  }
}

/// Matrix products whose epilogue ends in another type.
void claimFinishedProducts(cdl::Capabilities& c) {
  constexpr uint8_t F32 = CDL_F32;
  constexpr uint8_t kFinished[] = {F32, CDL_I8, CDL_U8};
  for (uint8_t y : kFinished) {
    if (y != F32) c.native(Kind::MatMul, 0, {F32, F32, y});
    for (uint8_t elem : {CDL_I8, CDL_U8}) {
      c.native(Kind::MatMul, 0, {elem, CDL_I8, y});
      c.native(Kind::MatMul, 0, {elem, CDL_I8, elem, y});
      c.native(Kind::MatMul, 0, {elem, CDL_I8, elem, CDL_I8, y});
    }
  }
}

/// Products with constant weights that are floats of 4, 8 or 16 bits.
void claimFloatWeights(cdl::Capabilities& c) {
  constexpr uint8_t F32 = CDL_F32, E8M0 = CDL_F8E8M0;
  const auto claim = [&](uint8_t w, uint8_t scale) {
    c.native(Kind::ScaledMatMul, CDL_SCALED_MATMUL_EXACT, {F32, w, scale, F32}, {0, 0, 0, 0}, {},
             CDL_CLASS_AFFINE);
  };
  for (uint8_t w : {CDL_F16, CDL_BF16}) claim(w, F32);
  claim(CDL_F4E2M1, E8M0);
  for (uint8_t w : {CDL_F8E4M3, CDL_F8E5M2})
    for (uint8_t scale : {F32, E8M0}) claim(w, scale);
}

/// Products with constant weights of 2, 4 or 8 bits, whose blocks are whole words of a panel.
void claimScaledProducts(cdl::Capabilities& c) {
  constexpr uint8_t F32 = CDL_F32;
  const Kind kind = Kind::ScaledMatMul;
  const auto block = [] { return cdl::dim(2, 1); };
  claimFloatWeights(c);
  c.limit(kind, {cdl::isConst(1), cdl::isConst(2), cdl::dim(1, 1) >= 1,
                 block() % kScaledBlockLanes == 0, block() <= kMostInScaledBlock});
  for (uint16_t fn : {CDL_SCALED_MATMUL_EXACT, CDL_SCALED_MATMUL_DYNAMIC})
    for (uint8_t w : {CDL_I2, CDL_U2, CDL_I4, CDL_U4, CDL_I8, CDL_U8}) {
      const bool isExact = fn == CDL_SCALED_MATMUL_EXACT;
      const int bits = static_cast<int>(cdl_elem_bits(w));
      const int64_t most = isExact ? kMostInScaledBlock : mostInWholeBlock(bits);
      const int64_t word = std::max(weightsOfWord(bits), kScaledBlockLanes);
      for (uint8_t scale : {F32, uint8_t(CDL_F16), uint8_t(CDL_BF16)}) {
        if (bits == 2 && scale != F32) continue; // nobody writes such models
        c.native(kind, fn, {F32, w, scale, F32}, {0, 0, 0, 0},
                 {block() % word == 0, block() <= most}, CDL_CLASS_AFFINE);
        for (uint8_t zero : {uint8_t(CDL_I8), uint8_t(CDL_U8), F32})
          if (zero != F32 || isExact)
            c.native(kind, fn, {F32, w, scale, zero, F32}, {0, 0, 0, 0, 0},
                     {cdl::isConst(3), block() % word == 0, block() <= most}, CDL_CLASS_AFFINE);
      }
    }
}

/// Attention in one pass over keys and values.
void claimAttention(cdl::Capabilities& c) {
  constexpr uint8_t F32 = CDL_F32;
  const Kind kind = Kind::Attention;
  c.limit(kind, {cdl::dim(1, 1) >= 1, cdl::dim(2) % kAttentionLanes == 0,
                 cdl::dim(2) <= kMostAttentionWidth, cdl::dim(2, 2) % kAttentionLanes == 0,
                 cdl::dim(2, 2) <= kMostAttentionWidth});
  c.native(kind, 0, {F32, F32, F32, F32}, CDL_CLASS_ROW_STRIDED);
  c.native(kind, 0, {F32, F32, F32, F32, F32}, CDL_CLASS_ROW_STRIDED);
}

/// RESCALE between integers of every width, of one operand or two.
void claimRescales(cdl::Capabilities& c) {
  constexpr uint8_t I32 = CDL_I32;
  constexpr uint8_t kRescaled[] = {CDL_I8, CDL_U8, CDL_I32};
  for (uint8_t y : kRescaled)
    for (uint8_t a : kRescaled) {
      const bool isRequired = y != I32 && (a == I32 || a == y); // by INT8
      if (!isRequired) c.native(Kind::Rescale, 0, {a, I32, I32, I32, y}, CDL_CLASS_AFFINE);
      for (uint8_t b : kRescaled)
        c.native(Kind::Rescale, 0, {a, I32, I32, I32, b, I32, y}, CDL_CLASS_AFFINE);
    }
}

/// Pools, and what goes over rows: softmax, normalization, the place of an extreme.
void claimPoolsAndRows(cdl::Capabilities& c) {
  constexpr uint8_t F32 = CDL_F32, I32 = CDL_I32, I64 = CDL_I64;
  for (uint16_t fn : {CDL_POOL2D_MAX, CDL_POOL2D_AVERAGE}) c.native(Kind::Pool2d, fn, {F32, F32});
  for (uint8_t elem : {CDL_I8, CDL_U8}) c.native(Kind::Pool2d, CDL_POOL2D_MAX, {elem, elem});
  for (uint16_t fn : {CDL_SOFTMAX_SOFTMAX, CDL_SOFTMAX_LOG_SOFTMAX})
    c.native(Kind::Softmax, fn, {F32, F32});
  for (uint16_t fn : {CDL_NORM_LAYER, CDL_NORM_RMS}) {
    c.native(Kind::Norm, fn, {F32, F32});
    c.native(Kind::Norm, fn, {F32, F32, F32});
    c.native(Kind::Norm, fn, {F32, F32, F32, F32});
  }
  for (uint16_t fn : {CDL_ARG_REDUCE_MAX, CDL_ARG_REDUCE_MIN})
    for (uint8_t elem : {F32, I32, uint8_t(CDL_I8), uint8_t(CDL_U8)})
      for (uint8_t index : {I32, I64}) c.native(Kind::ArgReduce, fn, {elem, index});
}

/// Types of no claimed profile that kernels move and compute all the same.
void claimOtherTypes(cdl::Capabilities& c) {
  constexpr uint8_t F32 = CDL_F32, F64 = CDL_F64, BOOL = CDL_BOOL, I32 = CDL_I32, I64 = CDL_I64;
  for (uint8_t elem : {F64, I64, uint8_t(CDL_U16), uint8_t(CDL_U32), uint8_t(CDL_U64)}) {
    c.native(Kind::Copy, 0, {elem, elem}, CDL_CLASS_AFFINE);
    c.native(Kind::Fill, 0, {elem}, CDL_CLASS_AFFINE);
    c.native(Kind::Select, 0, {BOOL, elem, elem, elem}, CDL_CLASS_AFFINE);
    for (uint16_t fn : {CDL_COMPARE_EQ, CDL_COMPARE_LT})
      c.native(Kind::Compare, fn, {elem, elem, BOOL}, CDL_CLASS_AFFINE);
    for (uint16_t fn : {CDL_BINARY_ADD, CDL_BINARY_SUB, CDL_BINARY_MUL, CDL_BINARY_DIV,
                        CDL_BINARY_MIN, CDL_BINARY_MAX})
      c.native(Kind::Binary, fn, {elem, elem, elem}, CDL_CLASS_AFFINE);
    for (uint16_t fn : {CDL_GATHER_CLAMP, CDL_GATHER_ZERO})
      c.native(Kind::Gather, fn, {elem, I32, elem});
    if (elem == CDL_U64) continue;
    for (uint8_t other : {F32, I32, uint8_t(CDL_I8), uint8_t(CDL_U8)}) {
      c.native(Kind::Convert, CDL_CONVERT_TRUNC, {elem, other}, CDL_CLASS_AFFINE);
      c.native(Kind::Convert, CDL_CONVERT_TRUNC, {other, elem}, CDL_CLASS_AFFINE);
    }
  }
}

/// Halves are moved and become f32, in which everything else is computed.
void claimHalves(cdl::Capabilities& c) {
  constexpr uint8_t F32 = CDL_F32;
  constexpr uint8_t BOOL = CDL_BOOL;
  for (uint8_t half : {CDL_F16, CDL_BF16}) {
    c.native(Kind::Copy, 0, {half, half}, CDL_CLASS_AFFINE);
    c.native(Kind::Fill, 0, {half}, CDL_CLASS_AFFINE);
    c.native(Kind::Select, 0, {BOOL, half, half, half}, CDL_CLASS_AFFINE);
    c.native(Kind::Convert, CDL_CONVERT_TRUNC, {half, F32}, CDL_CLASS_AFFINE);
    c.native(Kind::Convert, CDL_CONVERT_TRUNC, {F32, half}, CDL_CLASS_AFFINE);
    for (uint16_t fn : {CDL_GATHER_CLAMP, CDL_GATHER_ZERO})
      c.native(Kind::Gather, fn, {half, CDL_I32, half});
    c.native(Kind::Scatter, CDL_SCATTER_SET, {CDL_I32, half, half});
  }
}

} // namespace

void claimProductsOfBF16(cdl::Capabilities& c) {
  constexpr uint8_t BF16 = CDL_BF16, F32 = CDL_F32;
  const uint16_t image = c.layout("nchw", "n,h,w,c");
  const uint16_t pairs = c.layout("oikl", "o/16,k,l,i/2,o%16,i%2");
  const uint16_t taps = c.layout("oikl", "o/16,k,l,i,o%16");
  const cdl::Atom ungrouped = cdl::attr(CDL_ATTR_GROUP) == 1;
  const cdl::Atom packed = cdl::isConst(1);
  const cdl::Atom forward = isForward();
  const cdl::Atom undilated[] = {cdl::attr(CDL_ATTR_DILATIONS, 0) == 1,
                                 cdl::attr(CDL_ATTR_DILATIONS, 1) == 1};
  for (uint8_t y : {BF16, F32}) { // f32: with an epilogue that ends there
    c.native(Kind::MatMul, 0, {BF16, BF16, y}, CDL_CLASS_AFFINE);
    c.native(Kind::Conv2d, 0, {BF16, BF16, y}, {0, 0, 0}, {forward}, CDL_CLASS_DENSE);
    c.native(Kind::Conv2d, 0, {BF16, BF16, y}, {0, 0, 0},
             {cdl::attr(CDL_ATTR_TRANSPOSED) == 1, undilated[0], undilated[1]}, CDL_CLASS_DENSE);
    c.native(Kind::Conv2d, 0, {BF16, BF16, y}, {image, pairs, image},
             {ungrouped, packed, cdl::dim(3) % 2 == 0, forward});
    c.native(Kind::Conv2d, 0, {BF16, BF16, y}, {image, taps, image},
             {cdl::dim(3, 1) == 1, packed, cdl::dim(3) % 16 == 0, forward}); // depthwise
  }
  // Of an image as it comes, in f32.
  for (uint8_t y : {F32, BF16})
    c.native(Kind::Conv2d, 0, {F32, F32, y}, {0, taps, image}, {ungrouped, packed, forward});
  c.native(Kind::Pool2d, CDL_POOL2D_MAX, {BF16, BF16});
  c.native(Kind::Pool2d, CDL_POOL2D_MAX, {BF16, BF16}, {image, image});
}

void claimOptional(cdl::Capabilities& c) {
  constexpr uint8_t F32 = CDL_F32, I32 = CDL_I32;
  for (Kind kind : {Kind::Copy, Kind::Fill, Kind::Convert, Kind::Binary, Kind::Compare,
                    Kind::Select, Kind::Unary, Kind::Rescale, Kind::Elementwise, Kind::MatMul})
    c.operandClass(kind, CDL_CLASS_AFFINE);
  claimExpressions(c);
  claimConvolutions(c);
  claimIntegerProducts(c);
  claimFinishedProducts(c);
  claimScaledProducts(c);
  claimAttention(c);
  claimRescales(c);
  claimPoolsAndRows(c);
  for (uint16_t fn : {CDL_UNARY_CEIL, CDL_UNARY_TRUNC, CDL_UNARY_ROUND_EVEN, CDL_UNARY_RSQRT,
                      CDL_UNARY_TANH, CDL_UNARY_ERF, CDL_UNARY_SIGMOID})
    c.native(Kind::Unary, fn, {F32, F32});
  claimOtherTypes(c);
  claimHalves(c);
  c.native(Kind::Rescale, 0, {CDL_I16, I32, I32, I32, CDL_I16, I32, CDL_I16}, CDL_CLASS_AFFINE);
  c.native(Kind::Binary, CDL_BINARY_REM, {I32, I32, I32}, CDL_CLASS_AFFINE);
}

} // namespace cpu
