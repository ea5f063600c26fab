#include "tests/unit/compiler/lowering/decompose/cases.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/compiler/graph/passes/integer_rows.h"
#include "core/runtime/host_executor/soft.h"
#include "core/support/float_bits.h"
#include "core/support/text/literal.h"
#include "tests/unit/compiler/capabilities/tables.h"

namespace candela::cases {

using graph::OpKind;

namespace {

using Ints = std::vector<int64_t>;
constexpr Elem kFloats[] = {Elem::f32_, Elem::f16_, Elem::bf16_, Elem::f64_};
constexpr double kInf = std::numeric_limits<double>::infinity(),
                 kNan = std::numeric_limits<double>::quiet_NaN();

void store(Tensor& tensor, int64_t i, double value) {
  const Elem elem = tensor.elem;
  const int bits = elemBits(elem);
  uint64_t stored =
      isFloat(elem) ? fromReal(elem, value) : static_cast<uint64_t>(static_cast<int64_t>(value));
  if (bits < 64) stored &= (uint64_t(1) << bits) - 1;
  storeElement(elem, tensor.bytes.mutableData(), i, stored);
}

Tensor values(Elem elem, Shape dims, const std::vector<double>& list) {
  Tensor tensor = std::move(Tensor::zeros(elem, std::move(dims))).value();
  EXPECT_EQ(tensor.count(), static_cast<int64_t>(list.size()));
  for (size_t i = 0; i < list.size(); ++i) store(tensor, static_cast<int64_t>(i), list[i]);
  return tensor;
}

// Reproducible elements between lo and hi; whole numbers for integers, at least lo.
Tensor between(Elem elem, Shape dims, double lo, double hi, uint64_t seed = 1) {
  Tensor tensor = std::move(Tensor::zeros(elem, std::move(dims))).value();
  for (int64_t i = 0; i < tensor.count(); ++i) {
    const double unit =
        static_cast<double>(splitmix64(seed * 1000003 + static_cast<uint64_t>(i)) >> 11) * 0x1p-53;
    const double value =
        isFloat(elem) ? lo + unit * (hi - lo) : std::floor(lo + unit * (hi - lo + 1));
    store(tensor, i, value);
  }
  return tensor;
}
Tensor random(Elem elem, Shape dims, uint64_t seed = 1) {
  return isFloat(elem) ? between(elem, dims, -2, 2, seed)
                       : between(elem, dims, isSigned(elem) ? -9 : 0, 9, seed);
}
Operand constant(Tensor tensor) { return {std::move(tensor), true, false}; }
Operand input(Tensor tensor) { return {std::move(tensor), false, false}; }
const Operand kAbsent{{}, false, true};

class List {
public:
  std::vector<Case> cases;
  Case& add(OpKind kind, std::vector<Operand> operands, graph::Attrs attrs = {}) {
    Case test;
    test.kind = kind;
    test.operands = std::move(operands);
    test.attrs = std::move(attrs);
    cases.push_back(std::move(test));
    return cases.back();
  }
  // Bounds hold in the element type; 64-bit types are the host's.
  void bound(double ulps, double floor = 1) {
    cases.back().ulps = ulps;
    cases.back().floor = floor;
  }
};

void addElementwise(List& list) {
  struct Unary {
    OpKind kind;
    double lo, hi, ulps;
  };
  constexpr Unary kUnary[] = {
      {OpKind::Neg, -3, 3, 0},     {OpKind::Abs, -3, 3, 0},   {OpKind::Floor, -3, 3, 0},
      {OpKind::Ceil, -3, 3, 0},    {OpKind::Sqrt, 0, 9, 1},   {OpKind::Reciprocal, 0.1, 3, 1},
      {OpKind::Exp, -9, 9, 1},     {OpKind::Log, 0.01, 9, 1}, {OpKind::Tanh, -6, 6, 6},
      {OpKind::Sigmoid, -9, 9, 6}, {OpKind::Erf, -5, 5, 8},   {OpKind::Relu, -3, 3, 0}};
  for (const Unary& op : kUnary)
    for (Elem elem : kFloats) {
      list.add(op.kind, {input(between(elem, {3, 67}, op.lo, op.hi))});
      // Relative to the result itself: small arguments must not lose digits.
      list.bound(op.ulps, 1e-3);
      list.add(op.kind, {input(values(elem, {9},
                                      {0, -0.0, kInf, -kInf, kNan, 1e-4, -1e-4, 60000, -60000}))});
      list.bound(op.ulps, 1e-5);
    }
  for (Elem elem : kFloats) { // 1 + erf cancels below 0
    list.add(OpKind::Gelu, {input(between(elem, {3, 67}, -4, 4))});
    list.bound(16);
  }
  for (Elem elem : {Elem::f32_, Elem::f64_}) {
    list.add(OpKind::Pow, {input(between(elem, {9}, 1, 4)), input(between(elem, {9}, -3, 3, 2))});
    list.bound(16, 0.01);
    list.add(OpKind::Pow, {input(values(elem, {10}, {-2, -2, -2, 0, 0, 0, 1, kNan, kInf, 3})),
                           input(values(elem, {10}, {2, 3, 0.5, 0, 2, -1, kInf, 0, 2, kNan}))});
    list.bound(16);
  }
  for (OpKind kind : {OpKind::Neg, OpKind::Abs, OpKind::Relu})
    for (Elem elem : {Elem::i8_, Elem::i16_, Elem::i32_, Elem::i64_})
      list.add(kind, {input(values(elem, {5}, {-128, -1, 0, 1, 127}))});
  list.add(OpKind::Abs, {input(random(Elem::u8_, {7}))});
  for (OpKind kind : {OpKind::Add, OpKind::Sub, OpKind::Mul, OpKind::Div, OpKind::Min, OpKind::Max,
                      OpKind::Equal, OpKind::Less})
    for (Elem elem : {Elem::f32_, Elem::f16_, Elem::bf16_, Elem::f64_, Elem::i8_, Elem::u8_,
                      Elem::i16_, Elem::i32_, Elem::i64_}) {
      list.add(kind, {input(random(elem, {2, 3, 4})), input(random(elem, {2, 3, 4}, 2))});
      list.bound(1);
      list.add(kind, {input(random(elem, {2, 1, 4})), input(random(elem, {3, 1}, 2))});
      list.bound(1);
      list.add(kind, {input(random(elem, {})), constant(random(elem, {}, 2))});
      list.bound(1);
      list.add(kind, {input(random(elem, {0, 3})), input(random(elem, {1, 3}, 2))});
    }
  for (OpKind kind : {OpKind::Min, OpKind::Max, OpKind::Less})
    list.add(kind, {input(values(Elem::f32_, {4}, {kNan, 1, kNan, -kInf})),
                    input(values(Elem::f32_, {4}, {1, kNan, kNan, kInf}))});
  list.add(OpKind::Add, {input(values(Elem::i8_, {3}, {127, -128, 100})),
                         input(values(Elem::i8_, {3}, {1, -1, 100}))});
  list.add(OpKind::Equal, {input(values(Elem::bool_, {4}, {0, 0, 1, 1})),
                           input(values(Elem::bool_, {4}, {0, 1, 0, 1}))});
  // A broadcast that needs all eight dims of a view.
  const Shape odd{2, 1, 2, 1, 2, 1, 2, 1}, even{1, 2, 1, 2, 1, 2, 1, 2};
  list.add(OpKind::Add, {input(random(Elem::f32_, odd)), input(random(Elem::f32_, even, 2))});
  for (Elem elem : {Elem::f32_, Elem::i8_, Elem::bool_, Elem::i64_})
    list.add(OpKind::Select,
             {input(between(Elem::bool_, {2, 1, 3}, 0, 1)), input(between(elem, {4, 1}, 0, 1)),
              input(between(elem, {3}, 0, 1, 2))});
  for (Elem elem : {Elem::f32_, Elem::bf16_, Elem::i32_, Elem::i8_}) {
    list.add(OpKind::Clip, {input(random(elem, {50})), constant(values(elem, {}, {0})),
                            input(values(elem, {}, {1}))});
    list.add(OpKind::Clip, {input(random(elem, {50})), kAbsent, input(values(elem, {}, {1}))});
    list.add(OpKind::Clip, {input(random(elem, {5})), input(values(elem, {}, {3})),
                            input(values(elem, {}, {1}))});
    list.add(OpKind::Clip, {input(random(elem, {5}))});
  }
  for (Elem from : {Elem::f32_, Elem::f16_, Elem::i8_, Elem::u8_, Elem::i16_, Elem::i32_,
                    Elem::i64_, Elem::bool_, Elem::f64_})
    for (Elem to : {Elem::f32_, Elem::f16_, Elem::i8_, Elem::u8_, Elem::i16_, Elem::i32_,
                    Elem::i64_, Elem::bool_})
      for (int64_t saturate : {0, 1}) {
        const bool wide = isFloat(from) || isSigned(from);
        Tensor x = from == Elem::bool_
                       ? values(from, {6}, {0, 1, 1, 0, 1, 0})
                       : values(from, {6},
                                {0, 1, wide ? -1.0 : 2, 100, isFloat(from) ? 0.5 : 3,
                                 wide && elemBits(from) > 8 ? 300.0 : 7});
        list.add(OpKind::Cast, {input(std::move(x))}, {{"to", to}, {"saturate", saturate}});
        // Between float types, and out of i64, the profiles ask for no CONVERT. From f16 to itself
        // there are two where infinities become limits.
        const bool isFinite = saturate && from == Elem::f16_;
        list.cases.back().hostOnly = isFloat(from) && isFloat(to) && (from != to || isFinite);
      }
  for (Elem elem : {Elem::f32_, Elem::f64_, Elem::f16_})
    for (int64_t saturate : {0, 1}) {
      list.add(OpKind::Cast, {input(values(elem, {5}, {kInf, -kInf, kNan, -0.0, 1.5}))},
               {{"to", elem}, {"saturate", saturate}});
      list.cases.back().hostOnly = saturate && elem == Elem::f16_;
    }
  for (Elem to : {Elem::i32_, Elem::u32_})
    list.add(OpKind::Bitcast, {input(values(Elem::f32_, {3}, {-0.0, 1, -2.5}))}, {{"to", to}});
  list.add(OpKind::Bitcast, {input(values(Elem::i16_, {2, 2}, {-1, 15360, -32768, 0x7c00}))},
           {{"to", Elem::f16_}});
  for (const char* mode : {"trunc", "rne", "floor"})
    for (Elem to : {Elem::i32_, Elem::i8_, Elem::u8_})
      list.add(OpKind::Round,
               {input(values(Elem::f32_, {7}, {-2.5, -0.5, 0.5, 1.5, 2.5, 300, kNan}))},
               {{"to", to}, {"mode", std::string(mode)}, {"saturate", int64_t(1)}});
}

void addFunctions(List& list) {
  struct Unary {
    OpKind kind;
    double lo, hi, ulps;
  };
  constexpr Unary kUnary[] = {
      {OpKind::Trunc, -3, 3, 0},       {OpKind::RoundEven, -3, 3, 0}, {OpKind::Log1p, -0.9, 9, 4},
      {OpKind::Log1p, -.01, .01, 4},   {OpKind::Expm1, -3, 9, 4},     {OpKind::Expm1, -.01, .01, 4},
      {OpKind::Sin, -7, 7, 4},         {OpKind::Sin, -9e4, 9e4, 4},   {OpKind::Cos, -7, 7, 4},
      {OpKind::Cos, -9e4, 9e4, 4},     {OpKind::Tan, -7, 7, 8},       {OpKind::Asin, -1, 1, 8},
      {OpKind::Acos, -1, 1, 8},        {OpKind::Atan, -4, 4, 5},      {OpKind::Sinh, -9, 9, 6},
      {OpKind::Sinh, -.01, .01, 6},    {OpKind::Cosh, -9, 9, 6},      {OpKind::Asinh, -9, 9, 6},
      {OpKind::Asinh, -.01, .01, 6},   {OpKind::Acosh, 1, 9, 6},      {OpKind::Acosh, 1, 1.001, 6},
      {OpKind::Atanh, -.999, .999, 6}, {OpKind::Atanh, -.01, .01, 6}};
  // The profiles ask for no way from a half to f32, where these have digits enough.
  const auto needsWide = [&](Elem elem) {
    const OpKind kind = list.cases.back().kind;
    list.cases.back().hostOnly =
        elemBits(elem) == 16 &&
        (kind == OpKind::Sin || kind == OpKind::Cos || kind == OpKind::Tan || kind == OpKind::Rem);
  };
  for (const Unary& op : kUnary)
    for (Elem elem : kFloats) {
      list.add(op.kind, {input(between(elem, {3, 67}, op.lo, op.hi))});
      list.bound(op.ulps, 1e-30);
      needsWide(elem);
      list.add(op.kind, {input(values(elem, {15},
                                      {0, -0.0, kInf, -kInf, kNan, 1e-6, -1e-6, 1, -1, 0.5, 2.5,
                                       -3.5, 88.9, 60000, -60000}))});
      list.bound(op.ulps, 1e-30);
      needsWide(elem);
    }
  // What is nearest to multiples of pi / 2 below 2^20.
  for (OpKind kind : {OpKind::Sin, OpKind::Cos, OpKind::Tan}) {
    list.add(kind,
             {input(values(Elem::f32_, {4}, {1.57079637, -252.898209, 52516.4336, 3.14159274}))});
    list.bound(8, 1e-30);
    list.add(kind,
             {input(values(Elem::f64_, {4}, {1.5707963267948966, 11.0, 4e14, 3.141592653589793}))});
    list.bound(8, 1e-30);
  }
  for (Elem elem : kFloats) {
    list.add(OpKind::Rem,
             {input(between(elem, {3, 67}, -9, 9)), input(between(elem, {67}, -2, 2, 2))});
    needsWide(elem);
    list.add(OpKind::Rem,
             {input(values(elem, {11}, {-6, 6, 5.5, -5.5, 1000, 0.25, kInf, 1, kNan, 1, 1})),
              input(values(elem, {11}, {3, -3, 3, 3, 0.001953125, 7, 2, kInf, 1, kNan, 0}))});
    needsWide(elem);
  }
  list.add(OpKind::Rem, {input(values(Elem::f32_, {3}, {1e7, 3e38, -1e-44})),
                         input(values(Elem::f32_, {3}, {.7, 3e37, 3e-45}))});
  for (Elem elem : {Elem::i8_, Elem::u8_, Elem::i16_, Elem::u16_, Elem::i32_, Elem::u32_,
                    Elem::i64_, Elem::u64_}) {
    const double low = isSigned(elem) ? -std::ldexp(1, elemBits(elem) - 1) : 0,
                 bits = elemBits(elem);
    for (OpKind kind : {OpKind::Rem, OpKind::BitAnd, OpKind::BitOr, OpKind::BitXor})
      list.add(kind, {input(values(elem, {8}, {low, low, 100, 99, 7, low + 1, 0, 5})),
                      input(values(elem, {8},
                                   {low + 7, isSigned(elem) ? -1.0 : 3, 7, 0, 100, 6, 3, 5}))});
    for (OpKind kind : {OpKind::ShiftLeft, OpKind::ShiftRight})
      list.add(
          kind,
          {input(values(elem, {8}, {low, low + 5, 100, 1, 7, isSigned(elem) ? -1.0 : 9, 127, 3})),
           input(
               values(elem, {8},
                      {1, bits - 1, 3, bits - 1, 0, bits, bits + 1, isSigned(elem) ? -1.0 : 32}))});
    const Operand base = input(values(
        elem, {8}, {2, 3, isSigned(elem) ? -1.0 : 9, isSigned(elem) ? -3.0 : 7, 1, 0, 5, 11}));
    list.add(OpKind::Pow, {base, input(values(elem, {8}, {bits - 2, 41, 127, 3, 9, 0, 1, 2}))});
    list.add(OpKind::Pow, {base, constant(values(elem, {}, {3}))});
    if (isSigned(elem))
      list.add(OpKind::Pow, {base, input(values(elem, {8}, {-1, -2, -3, -1, -9, -1, -128, -5}))});
  }
  const Operand flags = input(values(Elem::bool_, {4}, {0, 0, 1, 1})),
                others = input(values(Elem::bool_, {4}, {0, 1, 0, 1}));
  for (OpKind kind : {OpKind::BitAnd, OpKind::BitOr, OpKind::BitXor})
    list.add(kind, {flags, others});
}

void addContractions(List& list) {
  const auto matmul = [&](Elem elem, Shape a, Shape b) {
    list.add(OpKind::Matmul,
             {input(random(elem, std::move(a))), input(random(elem, std::move(b), 2))});
    list.bound(4, 8);
  };
  for (Elem elem : {Elem::f32_, Elem::f16_, Elem::bf16_, Elem::f64_, Elem::i32_}) {
    matmul(elem, {5}, {5});
    matmul(elem, {5}, {5, 3});
    matmul(elem, {2, 5}, {5});
    matmul(elem, {4, 5}, {5, 3});
    matmul(elem, {2, 3, 4, 5}, {5, 6});
    matmul(elem, {4, 5}, {2, 3, 5, 6});
    matmul(elem, {2, 1, 4, 5}, {1, 3, 5, 6});
    matmul(elem, {3, 4, 5}, {2, 1, 5, 6});
    matmul(elem, {3, 4, 0}, {3, 0, 2});
    if (!isFloat(elem))
      for (size_t i = list.cases.size() - 9; i < list.cases.size(); ++i)
        list.cases[i].hostOnly = true;
  }
  for (int64_t mask = 0; mask < 4; ++mask) {
    const Shape a = mask & 1 ? Shape{5, 4} : Shape{4, 5}, b = mask & 2 ? Shape{3, 5} : Shape{5, 3};
    const graph::Attrs attrs{{"transA", mask & 1},
                             {"transB", mask >> 1},
                             {"alpha", 0.5},
                             {"beta", mask == 0 ? 1.0 : 2.5}};
    for (Elem elem : {Elem::f32_, Elem::f16_, Elem::i32_}) {
      for (const Shape& c : {Shape{4, 3}, Shape{3}, Shape{4, 1}, Shape{}}) {
        list.add(OpKind::Gemm,
                 {input(random(elem, a)), input(random(elem, b, 2)), input(random(elem, c, 3))},
                 attrs)
            .hostOnly = elem == Elem::i32_;
        list.bound(6, 8);
      }
      list.add(OpKind::Gemm, {input(random(elem, a)), constant(random(elem, b, 2))},
               {{"transA", mask & 1}, {"transB", mask >> 1}})
          .hostOnly = elem == Elem::i32_;
      list.bound(4, 8);
    }
  }
  struct Conv {
    Shape x, w;
    int64_t group;
    Ints strides, pads, dilations;
  };
  const Conv convs[] = {
      {{1, 3, 8, 8}, {4, 3, 3, 3}, 1, {1, 1}, {1, 1, 1, 1}, {1, 1}},
      {{2, 3, 8, 7}, {4, 3, 3, 2}, 1, {2, 1}, {0, 1, 2, 0}, {1, 2}},
      {{2, 6, 5, 5}, {4, 6, 1, 1}, 1, {1, 1}, {0, 0, 0, 0}, {1, 1}},
      {{1, 6, 5, 5}, {4, 6, 1, 1}, 1, {2, 3}, {0, 0, 0, 0}, {1, 1}},
      {{2, 6, 7, 7}, {6, 1, 3, 3}, 6, {1, 1}, {1, 1, 1, 1}, {1, 1}},
      {{1, 6, 7, 7}, {12, 1, 3, 3}, 6, {2, 2}, {1, 1, 1, 1}, {1, 1}},
      {{2, 6, 7, 7}, {4, 3, 3, 3}, 2, {1, 1}, {1, 0, 1, 0}, {2, 2}},
      {{1, 4, 5, 5}, {4, 2, 2, 2}, 2, {3, 3}, {0, 0, 0, 0}, {1, 1}},
      {{2, 3, 10}, {4, 3, 3}, 1, {2}, {1, 1}, {1}},
      {{2, 4, 4, 5, 4}, {4, 2, 2, 3, 2}, 2, {1, 2, 1}, {1, 0, 0, 0, 1, 1}, {1, 1, 2}},
      {{1, 2, 4, 4, 4}, {2, 1, 2, 2, 2}, 2, {1, 1, 1}, {0, 0, 0, 0, 0, 0}, {1, 1, 1}}};
  for (const Conv& conv : convs)
    for (Elem elem : {Elem::f32_, Elem::f16_, Elem::f64_})
      for (bool bias : {false, true}) {
        std::vector<Operand> operands{input(random(elem, conv.x)),
                                      constant(random(elem, conv.w, 2))};
        if (bias) operands.push_back(constant(random(elem, {conv.w[0]}, 3)));
        list.add(OpKind::Conv, std::move(operands),
                 {{"strides", conv.strides},
                  {"pads", conv.pads},
                  {"dilations", conv.dilations},
                  {"group", conv.group}});
        list.bound(8, 16);
      }
  list.add(OpKind::Conv,
           {input(random(Elem::f32_, {1, 2, 4, 4})), input(random(Elem::f32_, {3, 2, 2, 2}, 2))});
  list.bound(8, 16);
}

void addMovement(List& list) {
  for (Elem elem : {Elem::f32_, Elem::i8_, Elem::bool_, Elem::i64_}) {
    const auto x = [&](Shape dims) {
      return input(elem == Elem::bool_ ? between(elem, std::move(dims), 0, 1)
                                       : random(elem, std::move(dims)));
    };
    list.add(OpKind::Reshape, {x({2, 3, 4})}, {{"shape", Ints{4, 6}}});
    list.add(OpKind::Transpose, {x({2, 3, 4})}, {{"perm", Ints{2, 0, 1}}});
    list.add(OpKind::Transpose, {x({2, 3, 4})}, {{"perm", Ints{0, 1, 2}}});
    list.add(OpKind::Transpose, {x({2, 1, 3, 1, 2, 1, 2, 1, 2})},
             {{"perm", Ints{8, 7, 6, 5, 4, 3, 2, 1, 0}}});
    list.add(OpKind::Expand, {x({3, 1})}, {{"shape", Ints{2, 3, 4}}});
    list.add(OpKind::Expand, {x({2, 3})}, {{"shape", Ints{1}}});
    list.add(OpKind::Concat, {x({2, 3, 2}), x({2, 1, 2}), x({2, 0, 2})}, {{"axis", int64_t(1)}});
    list.add(OpKind::Concat, {x({2, 3}), x({1, 3})}, {{"axis", int64_t(-2)}});
    list.add(OpKind::Concat, {x({2, 3})}, {{"axis", int64_t(0)}});
    list.add(OpKind::Slice, {x({4, 5})},
             {{"starts", Ints{3, 1}}, {"counts", Ints{2, 2}}, {"steps", Ints{-2, 2}}});
    list.add(OpKind::Slice, {x({4, 5})},
             {{"starts", Ints{0, 0}}, {"counts", Ints{0, 5}}, {"steps", Ints{1, 1}}});
    list.add(OpKind::Pad, {x({2, 3})}, {{"lo", Ints{1, 0}}, {"hi", Ints{0, 2}}});
    list.add(OpKind::Pad, {x({2, 3}), constant(values(elem, {}, {1}))},
             {{"lo", Ints{1, 0}}, {"hi", Ints{0, 2}}});
    list.add(OpKind::Pad, {x({2, 3}), input(values(elem, {}, {1}))},
             {{"lo", Ints{1, 0}}, {"hi", Ints{0, 2}}});
    list.add(OpKind::Pad, {x({4, 5})}, {{"lo", Ints{-1, 2}}, {"hi", Ints{3, -2}}});
    list.add(OpKind::Pad, {x({4, 5})}, {{"lo", Ints{0, -6}}, {"hi", Ints{0, 3}}});
    for (const char* mode : {"edge", "reflect", "wrap"})
      list.add(OpKind::Pad, {x({4, 5})},
               {{"lo", Ints{2, 0}}, {"hi", Ints{1, 3}}, {"mode", std::string(mode)}});
    list.add(OpKind::Gather, {x({4, 5}), constant(values(Elem::i64_, {3}, {0, -1, 2}))},
             {{"axis", int64_t(0)}});
    list.add(OpKind::Gather, {x({4, 5}), input(values(Elem::i32_, {2, 2}, {0, -1, 2, -5}))},
             {{"axis", int64_t(1)}});
    list.add(OpKind::Gather, {x({4, 5}), input(values(Elem::i64_, {}, {-2}))},
             {{"axis", int64_t(-1)}})
        .hostOnly = true;
    list.add(OpKind::Gather, {x({4, 5}), constant(values(Elem::i64_, {0}, {}))},
             {{"axis", int64_t(0)}});
    list.add(OpKind::Affine, {x({4, 5})},
             {{"offset", int64_t(4)}, {"dims", Ints{4, 5}}, {"strides", Ints{5, -1}}});
    list.add(OpKind::Affine, {x({6})}, {{"dims", Ints{4, 3, 2}}, {"strides", Ints{1, 1, 0}}});
    list.add(OpKind::Place, {x({2, 2})},
             {{"dims", Ints{5, 4}},
              {"offsets", Ints{1, 0}},
              {"steps", Ints{3, 2}},
              {"value", int64_t(1)}});
    list.add(OpKind::Place, {x({2, 2}), x({2, 1})},
             {{"dims", Ints{2, 3}}, {"offsets", Ints{0, 0, 0, 2}}, {"fill", int64_t(0)}});
    for (const char* mode : {"clamp", "zero"})
      list.add(OpKind::Take, {x({2, 3, 4}), input(values(Elem::i32_, {4}, {2, 0, -1, 7}))},
               {{"mode", std::string(mode)}});
    for (const char* fn : {"set", "add", "min", "max"}) {
      if (elem == Elem::bool_ && std::string(fn) != "set") continue;
      list.add(OpKind::Put, {x({2, 3, 4}), input(values(Elem::i32_, {3}, {2, 0, 5})), x({2, 3, 4})},
               {{"fn", std::string(fn)}});
      list.bound(1, 4);
    }
  }
  list.add(OpKind::Put,
           {input(random(Elem::f32_, {1, 3, 2})), input(values(Elem::i32_, {2}, {2, 2})),
            input(random(Elem::f32_, {1, 2, 2}, 2))},
           {{"fn", std::string("add")}});
  list.bound(1, 4);
}

void addSorts(List& list) {
  for (Elem elem :
       {Elem::f32_, Elem::f16_, Elem::f64_, Elem::i32_, Elem::u8_, Elem::i64_, Elem::bool_})
    for (const bool descending : {false, true}) {
      const auto sort = [&](Shape dims, int64_t axis, int64_t k) {
        Case& test = list.add(OpKind::Sort, {input(between(elem, std::move(dims), 0, 3))}, // ties
                              {{"axis", axis}, {"k", k}, {"descending", descending}});
        test.results = 2;
        test.hostOnly = true;
      };
      sort({7}, 0, 7);
      sort({2, 9, 3}, 1, 4);
      sort({3, 5}, -1, 0);
      sort({2, 3, 1, 4}, 1, 3);
    }
  Case& test = list.add(OpKind::Sort,
                        {input(values(Elem::f32_, {7}, {1, kNan, -0.0, 0.0, -kInf, kNan, kInf}))},
                        {{"k", int64_t(7)}});
  test.results = 2;
  test.hostOnly = true;
}

void addArgReductions(List& list) {
  const auto add = [&](Tensor x, int64_t axis) {
    for (const char* fn : {"max", "min"})
      for (int64_t last : {0, 1})
        list.add(OpKind::ArgReduce, {input(x)},
                 {{"fn", std::string(fn)}, {"axis", axis}, {"select_last", last}});
  };
  for (Elem elem :
       {Elem::f32_, Elem::f16_, Elem::f64_, Elem::i32_, Elem::u8_, Elem::i8_, Elem::i64_}) {
    add(between(elem, {7}, 0, 3), 0); // ties
    add(between(elem, {2, 9, 3}, 0, 3), 1);
    add(between(elem, {2, 3, 1, 4}, 0, 3), -2);
    add(between(elem, {3, 40}, 0, 3), -1);
  }
  for (Elem elem : {Elem::f32_, Elem::bf16_}) {
    add(values(elem, {6}, {1, kNan, kInf, -kInf, kNan, 1}), 0);
    add(values(elem, {4}, {0.0, -0.0, -0.0, 0.0}), 0);
    add(values(elem, {2, 2}, {-kInf, -kInf, kInf, kInf}), 1);
  }
  // Beyond what f64 tells apart.
  add(Tensor::of<int64_t>(Elem::i64_, {3}, {INT64_MAX - 1, INT64_MAX, INT64_MAX - 1}), 0);
}

void addTransposedConvolutions(List& list) {
  struct Case {
    Shape x, w;
    Ints strides, pads, dilations;
    int64_t group;
  };
  const Case all[] = {
      {{1, 2, 3, 3}, {2, 3, 3, 3}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1},
      {{2, 4, 3, 4}, {4, 2, 3, 2}, {2, 3}, {1, 0, 2, 1}, {1, 2}, 2},
      // gaps, places behind
      {{1, 3, 4, 3}, {3, 1, 2, 2}, {3, 2}, {0, 1, -2, 0}, {1, 1}, 3},
      // wider than any tap reaches
      {{1, 2, 3, 3}, {2, 2, 2, 2}, {2, 2}, {-1, 0, -3, -5}, {1, 1}, 1},
      // whole elements of x left out
      {{1, 1, 5, 5}, {1, 1, 1, 2}, {2, 1}, {5, 2, 3, 3}, {1, 1}, 1},
      {{2, 2, 5}, {2, 3, 4}, {3}, {2, 1}, {2}, 1},
      {{1, 2, 2, 3, 2}, {2, 1, 2, 2, 3}, {1, 2, 2}, {0, 1, 0, 1, 0, -1}, {1, 1, 2}, 2}};
  for (const Case& one : all)
    for (Elem elem : {Elem::f32_, Elem::f16_, Elem::bf16_, Elem::f64_})
      for (const bool bias : {false, true}) {
        list.add(OpKind::ConvTranspose,
                 {input(random(elem, one.x)), input(random(elem, one.w, 2)),
                  bias ? input(random(elem, {one.w[1] * one.group}, 3)) : kAbsent},
                 {{"strides", one.strides},
                  {"pads", one.pads},
                  {"dilations", one.dilations},
                  {"group", one.group}});
        list.bound(6, 8);
      }
}

void addReductions(List& list) {
  for (OpKind kind : {OpKind::ReduceSum, OpKind::ReduceMean, OpKind::ReduceMax, OpKind::ReduceMin,
                      OpKind::ReduceProd})
    for (Elem elem : {Elem::f32_, Elem::f16_, Elem::bf16_, Elem::f64_, Elem::i32_, Elem::i8_,
                      Elem::u8_, Elem::i16_, Elem::i64_}) {
      const auto reduce = [&](Shape dims, Ints axes, int64_t keep) {
        Tensor x = kind == OpKind::ReduceProd ? between(elem, dims, 1, isFloat(elem) ? 1.5 : 2)
                                              : random(elem, dims);
        list.add(kind, {input(std::move(x))}, {{"axes", std::move(axes)}, {"keepdims", keep}});
        list.bound(kind == OpKind::ReduceProd ? 32 : 6, 4);
      };
      reduce({2, 3, 4}, {1}, 1);
      reduce({2, 3, 4}, {1, 2}, 0);
      reduce({2, 3, 4, 2}, {0, 2}, 0);
      reduce({2, 3, 1, 2}, {-1, 0}, 1);
      reduce({2, 3}, {0, 1}, 0);
      reduce({2, 3}, {}, 1);
      if (kind != OpKind::ReduceMean || isFloat(elem)) reduce({2, 0, 3}, {1}, 0);
      reduce({2, 40}, {1}, 0);
    }
  list.add(OpKind::ReduceMax, {input(values(Elem::f32_, {2, 2}, {kNan, 1, 2, -kInf}))},
           {{"axes", Ints{1}}});
  // A sum of halves that leaves f16 before the mean is taken.
  list.add(OpKind::ReduceMean, {input(between(Elem::f16_, {4096}, 30, 50))}, {{"axes", Ints{0}}});
  list.bound(8, 32);
  for (const char* fn : {"sum", "max", "min", "prod"})
    for (Elem elem : {Elem::f32_, Elem::f16_, Elem::i32_, Elem::i8_, Elem::u8_}) {
      list.add(OpKind::Reduce, {input(random(elem, {2, 3, 4}))}, {{"fn", std::string(fn)}});
      list.bound(2, 4);
    }
  for (Elem elem : {Elem::f32_, Elem::f16_, Elem::bf16_, Elem::f64_})
    for (int64_t axis : {0, 1, -1}) {
      list.add(OpKind::Softmax, {input(between(elem, {3, 4, 5}, -6, 6))}, {{"axis", axis}});
      list.bound(8, 0.2);
    }
  list.add(OpKind::Softmax,
           {input(values(Elem::f32_, {3, 2}, {-kInf, -kInf, kInf, 0, 1e30, 1e30}))});
  list.bound(8, 0.2);
  for (Elem elem : {Elem::f32_, Elem::f16_, Elem::f64_})
    for (int64_t training : {0, 1}) {
      const auto channel = [&](uint64_t seed, double lo) {
        return constant(between(elem, {3}, lo, 2, seed));
      };
      list.add(OpKind::BatchNorm,
               {input(random(elem, {4, 3, 5, 2})), channel(2, -2), channel(3, -2), channel(4, -2),
                channel(5, 0.5)},
               {{"training_mode", training}, {"epsilon", 1e-3}});
      list.cases.back().results = training ? 3 : 1;
      list.bound(elem == Elem::f16_ ? 24 : 12, 4);
      list.add(OpKind::BatchNorm,
               {input(random(elem, {4, 3})), channel(2, -2), channel(3, -2), channel(4, -2),
                channel(5, 0.5)},
               {{"training_mode", training}});
      list.bound(elem == Elem::f16_ ? 24 : 12, 4);
    }
}

void addRowNorms(List& list) {
  for (Elem elem : kFloats)
    for (int64_t axis : {0, 1, -1}) {
      const Shape shape{3, 4, 5};
      const Shape row(shape.begin() + (axis < 0 ? 2 : axis), shape.end());
      const Operand x = input(random(elem, shape)), scale = constant(random(elem, row, 2));
      for (OpKind kind : {OpKind::LayerNorm, OpKind::RmsNorm}) {
        list.add(kind, {x, scale}, {{"axis", axis}, {"epsilon", 1e-3}});
        list.bound(16, 4);
      }
      list.add(OpKind::LayerNorm, {x}, {{"axis", axis}});
      list.bound(16, 4);
      list.add(OpKind::LayerNorm, {x, scale, constant(random(elem, row, 3))}, {{"axis", axis}});
      list.bound(16, 4);
    }
}

void addAttention(List& list) {
  for (Elem elem : {Elem::f32_, Elem::f16_, Elem::f64_}) {
    const auto values = [&](Shape dims, uint64_t seed) {
      return input(random(elem, std::move(dims), seed));
    };
    const std::vector<Operand> one{values({3, 4}, 1), values({5, 4}, 2), values({5, 2}, 3)};
    list.add(OpKind::Attention, one);
    list.bound(16, 8);
    for (const Shape& mask :
         {Shape{}, Shape{5}, Shape{2, 1, 1, 5}, Shape{3, 3, 5}, Shape{2, 3, 3, 5}}) {
      std::vector<Operand> operands{values({2, 3, 3, 4}, 1), values({2, 3, 5, 4}, 2),
                                    values({2, 3, 5, 2}, 3)};
      if (!mask.empty()) operands.push_back(values(mask, 4));
      list.add(OpKind::Attention, operands, {{"scale", 0.5}});
      list.bound(16, 8);
    }
  }
}

/// A scale for each block of a row or column: powers of two and what lies between.
Operand scalesOf(Elem elem, Shape dims, uint64_t seed) {
  return constant(between(elem, std::move(dims), 0.25, 2, seed));
}

void addScaledMatmul(List& list) {
  const auto attrs = [](const char* fn, Elem to) {
    return graph::Attrs{{"fn", std::string(fn)}, {"to", to}};
  };
  for (const char* fn : {"exact", "dynamic"})
    for (const Elem w : {Elem::i4_, Elem::u4_, Elem::i8_, Elem::u2_})
      for (const Shape& a : {Shape{6, 13}, Shape{1, 13}, Shape{2, 16}}) {
        std::vector<Operand> operands{input(random(Elem::f32_, a, 1)),
                                      constant(between(w, {5, 2, 8}, 0, 1, 2)),
                                      scalesOf(Elem::f32_, {5, 2}, 3)};
        list.add(OpKind::ScaledMatmul, operands, attrs(fn, Elem::f32_));
        list.bound(32, 8);
        operands.push_back(constant(between(Elem::u8_, {5, 1}, 0, 9, 4)));
        list.add(OpKind::ScaledMatmul, operands, attrs(fn, Elem::f32_));
        list.bound(32, 8);
      }
  const std::vector<Operand> ofRun{
      input(random(Elem::f32_, {3, 13}, 1)), input(random(Elem::i8_, {5, 2, 8}, 2)),
      input(between(Elem::f32_, {5, 2}, 0.25, 2, 3)), input(random(Elem::i8_, {5, 2}, 4))};
  list.add(OpKind::ScaledMatmul, ofRun, attrs("exact", Elem::f32_));
  list.bound(64, 16);
  for (const Elem elem : {Elem::f8e4m3_, Elem::f4e2m1_}) {
    const std::vector<Operand> narrow{input(random(elem, {6, 13}, 1)),
                                      constant(random(elem, {5, 2, 8}, 2)),
                                      constant(between(Elem::f8e8m0_, {5, 2}, 0.25, 2, 3)), kAbsent,
                                      input(between(Elem::f8e8m0_, {6, 2}, 0.25, 2, 4))};
    list.add(OpKind::ScaledMatmul, narrow, attrs("exact", Elem::f32_));
    list.bound(32, 8);
  }
  const std::vector<Operand> half{input(random(Elem::f16_, {3, 16}, 1)),
                                  constant(random(Elem::i4_, {5, 2, 8}, 2)),
                                  scalesOf(Elem::f16_, {5, 2}, 3)};
  list.add(OpKind::ScaledMatmul, half, attrs("exact", Elem::f16_));
  list.bound(16, 8);
}

void addPools(List& list) {
  struct Pool {
    Shape x;
    Ints kernel, strides, pads, dilations;
    int64_t ceil;
  };
  const Pool pools[] = {{{1, 2, 6, 6}, {2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}, 0},
                        {{2, 2, 7, 6}, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, 0},
                        {{2, 2, 7, 7}, {3, 2}, {2, 2}, {0, 1, 0, 0}, {1, 2}, 1},
                        {{1, 2, 7, 7}, {3, 3}, {3, 3}, {1, 1, 1, 1}, {1, 1}, 1},
                        {{2, 2, 9}, {3}, {2}, {1, 0}, {2}, 1},
                        {{1, 2, 4, 5, 4}, {2, 2, 3}, {1, 2, 1}, {0, 1, 0, 1, 0, 1}, {1, 1, 1}, 0}};
  for (const Pool& pool : pools)
    for (Elem elem : {Elem::f32_, Elem::f16_, Elem::i8_, Elem::u8_, Elem::i32_, Elem::f64_}) {
      const graph::Attrs attrs{{"kernel_shape", pool.kernel},
                               {"strides", pool.strides},
                               {"pads", pool.pads},
                               {"dilations", pool.dilations},
                               {"ceil_mode", pool.ceil}};
      list.add(OpKind::MaxPool, {input(random(elem, pool.x))}, attrs);
      for (int64_t order : {0, 1}) {
        graph::Attrs indexed = attrs;
        indexed.emplace("storage_order", order);
        list.add(OpKind::MaxPool, {input(random(elem, pool.x))}, indexed).results = 2;
        list.cases.back().hostOnly = true; // indices are i64
      }
      if (!isFloat(elem)) continue;
      for (int64_t include : {0, 1}) {
        graph::Attrs average = attrs;
        average.emplace("count_include_pad", include);
        list.add(OpKind::AveragePool, {input(random(elem, pool.x))}, average);
        list.bound(6, 2);
      }
    }
  list.add(OpKind::MaxPool, {input(values(Elem::f32_, {1, 1, 4}, {kNan, 1, -kInf, -kInf}))},
           {{"kernel_shape", Ints{2}}, {"strides", Ints{2}}, {"pads", Ints{0, 0}}})
      .results = 2;
  list.cases.back().hostOnly = true;
  for (Elem elem : {Elem::f32_, Elem::f16_, Elem::f64_}) {
    list.add(OpKind::GlobalAveragePool, {input(random(elem, {2, 3, 5, 6}))});
    list.bound(6, 2);
  }
}

void addQuantized(List& list) {
  for (Elem a : {Elem::i32_, Elem::i8_})
    list.add(OpKind::Rescale,
             {input(between(a, {3, 4}, -100, 100)),
              constant(between(Elem::i32_, {4}, 1 << 23, (1 << 24) - 1)),
              constant(values(Elem::i32_, {}, {24})), constant(values(Elem::i32_, {}, {3}))},
             {{"to", Elem::i8_}, {"clamp_min", int64_t(-100)}, {"clamp_max", int64_t(90)}});
  list.add(OpKind::Table, {input(between(Elem::i8_, {3, 5}, -128, 127)),
                           constant(between(Elem::i8_, {256}, -128, 127, 2))});
  list.add(OpKind::Table, {input(between(Elem::i16_, {9}, -32768, 32767)),
                           constant(between(Elem::i16_, {513}, -32768, 32767, 2))});
  for (Elem elem : {Elem::f32_, Elem::f16_}) {
    list.add(OpKind::BatchMatmul,
             {input(random(elem, {2, 3, 4})), input(random(elem, {2, 4, 5}, 2))}, {{"to", elem}});
    list.bound(4, 8);
    list.add(OpKind::BatchMatmul,
             {input(random(elem, {1, 3, 4})), input(random(elem, {2, 4, 5}, 2))}, {{"to", elem}});
    list.bound(4, 8);
  }
  const auto bytes = [](Elem elem, Shape dims, uint64_t seed) {
    return input(between(elem, std::move(dims), isSigned(elem) ? -128 : 0,
                         isSigned(elem) ? 127 : 255, seed));
  };
  list.add(OpKind::BatchMatmul, {bytes(Elem::u8_, {1, 3, 4}, 1), bytes(Elem::i8_, {1, 4, 5}, 2)},
           {{"to", Elem::i32_}});
  list.add(OpKind::BatchMatmul,
           {bytes(Elem::u8_, {2, 3, 4}, 1), bytes(Elem::i8_, {1, 4, 5}, 2),
            constant(values(Elem::u8_, {1}, {7})), constant(between(Elem::i8_, {5}, -9, 9))},
           {{"to", Elem::i32_}})
      .hostOnly = true;
  list.add(OpKind::BatchMatmul,
           {bytes(Elem::i8_, {1, 3, 4}, 1), bytes(Elem::i8_, {2, 4, 5}, 2), kAbsent,
            constant(values(Elem::i8_, {1}, {7}))},
           {{"to", Elem::i32_}})
      .hostOnly = true;
  for (Elem elem : {Elem::f32_, Elem::f16_, Elem::f64_})
    for (Elem to : {Elem::u8_, Elem::i8_, Elem::u16_, Elem::i16_}) {
      list.add(OpKind::Quantize,
               {input(values(elem, {8}, {-300, -1.25, -0.25, 0.25, 0.75, 7, 60000, kNan})),
                constant(values(elem, {}, {0.5})), constant(values(to, {}, {3}))});
      list.cases.back().hostOnly = elem == Elem::f16_; // whose quotients are of f32
      list.add(OpKind::Quantize,
               {input(random(elem, {2, 3, 4})), constant(values(elem, {3}, {0.25, 1, 0.125})),
                input(values(to, {3}, {3, 0, 9}))},
               {{"axis", int64_t(1)}});
      list.cases.back().hostOnly = true;
    }
  for (Elem elem : {Elem::u8_, Elem::i8_, Elem::i16_, Elem::u16_, Elem::i32_})
    for (Elem to : {Elem::f32_, Elem::f16_, Elem::f64_}) {
      list.add(OpKind::Dequantize,
               {input(random(elem, {2, 3, 4})), constant(values(to, {}, {0.3}))});
      list.bound(1);
      list.add(OpKind::Dequantize,
               {input(random(elem, {2, 3, 4})), constant(values(to, {3}, {0.25, 1, 0.1})),
                constant(values(elem, {3}, {3, 0, 9}))},
               {{"axis", int64_t(1)}});
      list.bound(1);
    }
  for (Elem a : {Elem::u8_, Elem::i8_})
    for (Elem b : {Elem::i8_, Elem::u8_})
      for (int zeros = 0; zeros < 4; ++zeros) {
        const auto zero = [&](bool given, Elem elem, Shape dims) {
          return given ? constant(between(elem, std::move(dims), 1, 9)) : kAbsent;
        };
        const Operand aZero = zero(zeros & 1, a, {1});
        list.add(OpKind::MatmulInteger, {bytes(a, {2, 3, 4}, 1), bytes(b, {4, 5}, 2), aZero,
                                         zero(zeros & 2, b, {zeros == 3 ? 5 : 1})});
        for (int64_t group : {1, 2, 6})
          list.add(OpKind::ConvInteger,
                   {bytes(a, {2, 6, 5, 4}, 1), constant(bytes(b, {6, 6 / group, 3, 2}, 2).tensor),
                    zeros == 1 ? constant(between(Elem::i32_, {6}, -999, 999)) : kAbsent, aZero,
                    zero(zeros & 2, b, {zeros == 3 ? 6 : 1})},
                   {{"group", group}, {"pads", Ints{1, 1, 0, 0}}, {"strides", Ints{2, 1}}});
      }
  for (int64_t group : {1, 6}) // the padding is a zero point that nobody knows before
    list.add(OpKind::ConvInteger,
             {bytes(Elem::u8_, {2, 6, 5, 4}, 1),
              constant(bytes(Elem::i8_, {6, 6 / group, 3, 2}, 2).tensor), kAbsent,
              input(between(Elem::u8_, {1}, 1, 9))},
             {{"group", group}, {"pads", Ints{1, 1, 0, 0}}, {"strides", Ints{2, 1}}});
  list.add(OpKind::Rescale,
           {bytes(Elem::u8_, {3, 4}, 1), constant(values(Elem::i32_, {}, {9e6})),
            constant(values(Elem::i32_, {}, {26})), constant(values(Elem::i32_, {}, {3})),
            bytes(Elem::i8_, {3, 4}, 2), constant(values(Elem::i32_, {}, {-16e6}))},
           {{"to", Elem::i8_}, {"b_left_shift", int64_t(2)}})
      .hostOnly = true;
  // ELEMENTWISE is optional: only the host has it.
  const auto expr = [&](const char* steps, std::vector<Operand> operands, Elem to) {
    list.add(OpKind::Expr, std::move(operands), {{"to", to}, {"steps", std::string(steps)}})
        .hostOnly = true;
    list.bound(4);
  };
  expr("max(add(v0, v1), 0.0)",
       {input(random(Elem::f32_, {2, 3, 4})), input(random(Elem::f32_, {3, 1}, 2))}, Elem::f32_);
  expr("t0 = exp(v0); div(t0, add(t0, 1.0))", {input(random(Elem::f32_, {5}))}, Elem::f32_);
  expr("select(lt(v0, 0.0), mul(v0, 2.0), 0.5)", {input(random(Elem::f32_, {5}))}, Elem::f32_);
  expr("convert_i8_rne_saturate(mul(v0, 100.0))", {input(random(Elem::f32_, {5}))}, Elem::i8_);
}

// Bytes of which each row has a character of its own: all equal, one far away, one step apart, all
// distances, and random ones.
Tensor rowsOf(Elem elem, int64_t count) {
  const double lowest = isSigned(elem) ? -128 : 0;
  std::vector<double> list;
  for (int64_t i = 0; i < count; ++i) list.push_back(lowest + 7);
  for (int64_t i = 0; i < count; ++i) list.push_back(lowest + (i == count / 2 ? 255 : 0));
  for (int64_t i = 0; i < count; ++i) list.push_back(lowest + (i == count / 3 ? 9 : 8));
  for (int64_t i = 0; i < count; ++i) list.push_back(lowest + static_cast<double>(i % 256));
  const Tensor random = between(elem, {2, count}, lowest, lowest + 255);
  for (const int64_t value : random.toInts()) list.push_back(static_cast<double>(value));
  return values(elem, {6, count}, list);
}

void addIntegerRows(List& list) {
  const auto add = [&](OpKind kind, Tensor x, graph::passes::RowFunction function, int64_t axis) {
    std::vector<Operand> operands{input(std::move(x))};
    for (Tensor& tensor : function.operands) operands.push_back(constant(std::move(tensor)));
    function.attrs["axis"] = axis;
    list.add(kind, std::move(operands), std::move(function.attrs));
  };
  for (const int64_t count : {1, 2, 17, 300})
    for (Elem elem : {Elem::i8_, Elem::u8_}) {
      const Elem to = elem == Elem::i8_ ? Elem::u8_ : Elem::i8_;
      const int64_t zero = to == Elem::i8_ ? -128 : 0;
      add(OpKind::SoftmaxInteger, rowsOf(elem, count),
          *graph::passes::integerSoftmax(0.07, count, {1.0 / 256, zero, to}), -1);
      Tensor turned = rowsOf(elem, count);
      turned.dims = {3, 2, count}; // softmax over the dim in the middle
      add(OpKind::SoftmaxInteger, std::move(turned),
          *graph::passes::integerSoftmax(0.3, 2, {1.0 / 256, zero, to}), 1);
      graph::passes::RowNorm norm;
      norm.epsilon = 1e-5;
      for (int64_t i = 0; i < count; ++i) {
        norm.scale.push_back(1 + 0.01 * static_cast<double>(i % 7) - (i == 1 ? 2 : 0));
        norm.bias.push_back(0.1 * static_cast<double>(i % 5) - 0.2);
      }
      add(OpKind::LayerNormInteger, rowsOf(elem, count),
          *graph::passes::integerLayerNorm(0.05, norm, {0.03, zero + 128, to}), 1);
      for (const int64_t xZero : {zero + 128, zero + 3})
        add(OpKind::RmsNormInteger, rowsOf(to, count),
            *graph::passes::integerRmsNorm({0.05, xZero, to}, norm, {0.03, zero + 128, to}), 1);
    }
}

std::string nameOf(const Case& test, size_t index) {
  std::string name = fmt::format("{}_{}", graph::opName(test.kind), index);
  if (!test.operands.empty()) name += fmt::format(" {}", test.operands[0].tensor.typeText());
  return name;
}

} // namespace

std::vector<Case> all() {
  List list;
  addElementwise(list);
  addFunctions(list);
  addContractions(list);
  addMovement(list);
  addReductions(list);
  addRowNorms(list);
  addSorts(list);
  addArgReductions(list);
  addTransposedConvolutions(list);
  addScaledMatmul(list);
  addAttention(list);
  addPools(list);
  addQuantized(list);
  addIntegerRows(list);
  for (size_t i = 0; i < list.cases.size(); ++i) list.cases[i].name = nameOf(list.cases[i], i);
  return list.cases;
}

graph::Graph graphOf(const Case& test) {
  graph::Graph graph;
  std::vector<graph::Value*> operands;
  for (size_t i = 0; i < test.operands.size(); ++i) {
    const Operand& operand = test.operands[i];
    if (operand.absent)
      operands.push_back(nullptr);
    else if (operand.constant)
      operands.push_back(graph.addConstant(operand.tensor));
    else
      operands.push_back(graph.addInput(
          fmt::format("x{}", i), graph::TensorType(operand.tensor.elem, operand.tensor.dims)));
  }
  auto node = graph.addNode(test.kind, operands, test.attrs, {"Node"}, nullptr, test.results);
  EXPECT_TRUE(node.isOk()) << test.name << ": " << node.status().message();
  if (!node) return graph;
  for (graph::Value* result : (*node)->results()) graph.addOutput(result, result->name);
  return graph;
}

std::vector<Tensor> inputsOf(const Case& test) {
  std::vector<Tensor> inputs;
  for (const Operand& operand : test.operands)
    if (!operand.absent && !operand.constant) inputs.push_back(operand.tensor);
  return inputs;
}

std::string compare(const Case& test, const Tensor& expected, const Tensor& got) {
  const Elem elem = expected.elem;
  if (expected.sizeBytes() != got.bytes.size())
    return fmt::format("{} bytes, expected {}", got.bytes.size(), expected.sizeBytes());
  const double epsilon = elem == Elem::f16_    ? 0x1p-11
                         : elem == Elem::bf16_ ? 0x1p-8
                         : elem == Elem::f64_  ? 0x1p-53
                                               : 0x1p-24;
  for (int64_t i = 0; i < expected.count(); ++i) {
    const uint64_t a = loadElement(elem, expected.bytes.data(), i),
                   b = loadElement(elem, got.bytes.data(), i);
    if (a == b) continue;
    if (isFloat(elem)) {
      const double x = toReal(elem, a), y = toReal(elem, b);
      if (std::isnan(x) && std::isnan(y)) continue;
      if (x == y || std::abs(x - y) <= test.ulps * epsilon * std::max(std::abs(x), test.floor))
        continue;
    }
    return fmt::format("element {} is {}, expected {}", i, text::elementText(elem, b),
                       text::elementText(elem, a));
  }
  return "";
}

capabilities::Target accelerator() {
  auto target = capabilities::Table::all().target("acme");
  EXPECT_TRUE(target.isOk()) << target.status().message();
  return std::move(target).value();
}

capabilities::Target host() {
  auto target =
      capabilities::Target::fromCapabilities("host", runtime::host_executor::capabilities(), true);
  EXPECT_TRUE(target.isOk()) << target.status().message();
  return std::move(target).value();
}

} // namespace candela::cases
