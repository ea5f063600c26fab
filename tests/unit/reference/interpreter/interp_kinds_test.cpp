// One instruction of every kind, with results worked out by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/reference/interpreter/interp.h"
#include "tests/unit/compiler/program/program_text.h"

namespace candela::test {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::FloatNear;

/// What the buffer %y holds after the Program; constants are its inputs.
Tensor run(const std::string& body) {
  const auto parsed = parseBody(body);
  EXPECT_TRUE(parsed) << parsed.status().message();
  if (!parsed) return {};
  const auto results = reference::interpret(*parsed, {});
  EXPECT_TRUE(results) << results.status().message();
  return results ? results->front() : Tensor{};
}

std::vector<float> floats(const Tensor& tensor) {
  EXPECT_EQ(tensor.elem, Elem::f32_);
  return {tensor.as<float>(), tensor.as<float>() + tensor.count()};
}

/// Declares constant %name with the content.
std::string constant(const std::string& name, const std::string& elem, int count,
                     const std::string& content) {
  const uint64_t bytes = elemBytes(*parseElem(elem), static_cast<uint64_t>(count));
  return fmt::format("constant @{0} : {1}[{2}] = {3}\nbuffer %{0} constant @host {4} = @{0}\n",
                     name, elem, count, content, bytes);
}
std::string output(int bytes) { return fmt::format("buffer %y output @host {}\n", bytes); }

/// y = fn(a, b) on vectors of one type.
std::vector<int64_t> wholeBinary(const std::string& fn, const std::string& elem,
                                 const std::string& a, const std::string& b, int count) {
  return run(constant("a", elem, count, a) + constant("b", elem, count, b) +
             output(static_cast<int>(elemBytes(*parseElem(elem), static_cast<uint64_t>(count)))) +
             fmt::format("binary.{0} @in %a[{2}]:{1}, @in %b[{2}]:{1}, @out %y[{2}]:{1}", fn, elem,
                         count))
      .toInts();
}

TEST(InterpCopy, StridesReverseTransposeAndPlace) {
  const std::string x = constant("x", "i32", 6, "[1, 2, 3, 4, 5, 6]") + output(24);
  EXPECT_THAT(run(x + "copy @in %x[3,2]:i32 strides[1, 3], @out %y[3,2]:i32").toInts(),
              ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(run(x + "copy @in %x[6]:i32 at 5 strides[-1], @out %y[6]:i32").toInts(),
              ElementsAre(6, 5, 4, 3, 2, 1));
  EXPECT_THAT(run(x + "copy @in %x[2,3]:i32 at 1 strides[0, 2], @out %y[2,3]:i32").toInts(),
              ElementsAre(2, 4, 6, 2, 4, 6));
  EXPECT_THAT(run(x + "fill{value = 0xffffffff} @out %y[6]:i32\ncopy @in %x[2]:i32, @out %y[2]:i32 "
                      "at 1 strides[3]")
                  .toInts(),
              ElementsAre(-1, 1, -1, -1, 2, -1));
}

TEST(InterpConvert, RoundsSaturatesAndWraps) {
  const std::string x =
      constant("x", "f32", 8, "[2.5, -2.5, 3.5, -0.75, 300.0, -300.0, nan, inf]") + output(8);
  const auto convert = [&](const std::string& fn) {
    return run(x + fmt::format("convert.{} @in %x[8]:f32, @out %y[8]:i8", fn)).toInts();
  };
  EXPECT_THAT(convert("trunc{saturate = 1}"), ElementsAre(2, -2, 3, 0, 127, -128, 0, 127));
  EXPECT_THAT(convert("rne{saturate = 1}"), ElementsAre(2, -2, 4, -1, 127, -128, 0, 127));
  EXPECT_THAT(convert("floor{saturate = 1}"), ElementsAre(2, -3, 3, -1, 127, -128, 0, 127));
  // 300 - 256; inf is 2^64 - 1
  EXPECT_THAT(convert("trunc"), ElementsAre(2, -2, 3, 0, 44, -44, 0, -1));
  const Tensor truth = run(constant("x", "f32", 3, "[0.0, 0.25, nan]") + output(3) +
                           "convert.trunc @in %x[3]:f32, @out %y[3]:bool");
  EXPECT_THAT(truth.toInts(), ElementsAre(0, 1, 1));
  // 2^24 + 1 lies between two floats: to even.
  EXPECT_THAT(floats(run(constant("x", "i32", 2, "[16777217, 16777219]") + output(8) +
                         "convert.trunc @in %x[2]:i32, @out %y[2]:f32")),
              ElementsAre(16777216.0f, 16777220.0f));
  const std::string wide = constant("x", "f32", 2, "[65536.0, -65536.0]") + output(4);
  const Tensor inf = run(wide + "convert.trunc @in %x[2]:f32, @out %y[2]:f16");
  EXPECT_EQ(inf.as<uint16_t>()[0], 0x7c00);
  const Tensor finite = run(wide + "convert.trunc{saturate = 1} @in %x[2]:f32, @out %y[2]:f16");
  EXPECT_EQ(finite.as<uint16_t>()[1], 0xfbff);
  const Tensor nibbles = run(constant("x", "i4", 4, "[-8, 7, 1, -1]") + output(4) +
                             "convert.trunc @in %x[4]:i4, @out %y[4]:i8");
  EXPECT_THAT(nibbles.toInts(), ElementsAre(-8, 7, 1, -1));
}

TEST(InterpBinary, IntegersFollowTheSemantics) {
  EXPECT_THAT(wholeBinary("add", "i8", "[100, -100]", "[100, -100]", 2), ElementsAre(-56, 56));
  EXPECT_THAT(wholeBinary("sub", "u8", "[3]", "[5]", 1), ElementsAre(254));
  EXPECT_THAT(wholeBinary("mul", "i32", "[65536, -3]", "[65536, 7]", 2), ElementsAre(0, -21));
  EXPECT_THAT(wholeBinary("div", "i32", "[7, -7, 7, -2147483648]", "[2, 2, 0, -1]", 4),
              ElementsAre(3, -3, 0, INT32_MIN));
  EXPECT_THAT(wholeBinary("rem", "i32", "[7, -7, 7]", "[4, 4, 0]", 3), ElementsAre(3, -3, 7));
  EXPECT_THAT(wholeBinary("shl", "i8", "[1, 1, 3]", "[7, 8, 7]", 3), ElementsAre(-128, 0, -128));
  EXPECT_THAT(wholeBinary("shr", "i8", "[-128, -128, 64]", "[7, 9, 9]", 3), ElementsAre(-1, -1, 0));
  EXPECT_THAT(wholeBinary("shr", "u8", "[255, 255]", "[4, 8]", 2), ElementsAre(15, 0));
  EXPECT_THAT(wholeBinary("pow", "i32", "[3, 2, -1, 5]", "[4, -1, -3, 0]", 4),
              ElementsAre(81, 0, -1, 1));
  EXPECT_THAT(wholeBinary("min", "i16", "[3, -4]", "[2, 7]", 2), ElementsAre(2, -4));
  EXPECT_THAT(wholeBinary("xor", "bool", "[true, true]", "[true, false]", 2), ElementsAre(0, 1));
  EXPECT_THAT(wholeBinary("and", "i8", "[12]", "[10]", 1), ElementsAre(8));
  EXPECT_THAT(wholeBinary("mul", "u64", "[0xffffffffffffffff]", "[0xffffffffffffffff]", 1),
              ElementsAre(1));
}

TEST(InterpBinary, FloatsPropagateNan) {
  const auto y = floats(run(constant("a", "f32", 3, "[1.5, nan, 2.0]") +
                            constant("b", "f32", 3, "[2.0, 1.0, nan]") + output(12) +
                            "binary.max @in %a[3]:f32, @in %b[3]:f32, @out %y[3]:f32"));
  EXPECT_EQ(y[0], 2.0f);
  EXPECT_TRUE(std::isnan(y[1]) && std::isnan(y[2]));
}

TEST(InterpCompareSelect, NanIsNeitherLessNorEqual) {
  const std::string ab =
      constant("a", "f32", 3, "[1.0, nan, 2.0]") + constant("b", "f32", 3, "[2.0, nan, 2.0]");
  EXPECT_THAT(
      run(ab + output(3) + "compare.lt @in %a[3]:f32, @in %b[3]:f32, @out %y[3]:bool").toInts(),
      ElementsAre(1, 0, 0));
  EXPECT_THAT(
      run(ab + output(3) + "compare.eq @in %a[3]:f32, @in %b[3]:f32, @out %y[3]:bool").toInts(),
      ElementsAre(0, 0, 1));
  EXPECT_THAT(run(constant("c", "bool", 2, "[true, false]") + constant("a", "i8", 2, "[1, 2]") +
                  constant("b", "i8", 2, "[3, 4]") + output(2) +
                  "select @in %c[2]:bool, @in %a[2]:i8, @in %b[2]:i8, @out %y[2]:i8")
                  .toInts(),
              ElementsAre(1, 4));
}

TEST(InterpGatherScatter, IndicesOutside) {
  const std::string x = constant("x", "i32", 6, "[1, 2, 3, 4, 5, 6]") +
                        constant("i", "i32", 4, "[2, -1, 3, 0]") + output(32);
  EXPECT_THAT(run(x + "gather.clamp @in %x[1,3,2]:i32, @in %i[4]:i32, @out %y[1,4,2]:i32").toInts(),
              ElementsAre(5, 6, 1, 2, 5, 6, 1, 2));
  EXPECT_THAT(run(x + "gather.zero @in %x[1,3,2]:i32, @in %i[4]:i32, @out %y[1,4,2]:i32").toInts(),
              ElementsAre(5, 6, 0, 0, 0, 0, 1, 2));
  const std::string u = constant("u", "i32", 4, "[10, 20, 30, 40]") +
                        constant("i", "i64", 4, "[1, 1, 7, 0]") + output(12) +
                        "fill{value = 0x3} @out %y[3]:i32\n";
  const auto scatter = [&](const std::string& fn) {
    return run(u +
               fmt::format("scatter.{} @in %i[4]:i64, @in %u[1,4,1]:i32, @inout %y[1,3,1]:i32", fn))
        .toInts();
  };
  EXPECT_THAT(scatter("set"), ElementsAre(40, 20, 3));
  EXPECT_THAT(scatter("add"), ElementsAre(43, 33, 3));
  EXPECT_THAT(scatter("mul"), ElementsAre(120, 600, 3));
  EXPECT_THAT(scatter("max"), ElementsAre(40, 20, 3));
  EXPECT_THAT(scatter("min"), ElementsAre(3, 3, 3));
}

TEST(InterpReduce, AlongTheMiddle) {
  const std::string x = constant("x", "i32", 8, "[1, 2, 3, 4, 5, 6, 7, 8]") + output(16);
  const auto reduce = [&](const std::string& fn) {
    return run(x + fmt::format("reduce.{} @in %x[2,2,2]:i32, @out %y[2,2]:i32", fn)).toInts();
  };
  EXPECT_THAT(reduce("sum"), ElementsAre(4, 6, 12, 14));
  EXPECT_THAT(reduce("prod"), ElementsAre(3, 8, 35, 48));
  EXPECT_THAT(reduce("max"), ElementsAre(3, 4, 7, 8));
  EXPECT_THAT(reduce("min"), ElementsAre(1, 2, 5, 6));
  EXPECT_THAT(run(constant("x", "i8", 3, "[100, 100, 100]") + output(1) +
                  "reduce.sum @in %x[1,3,1]:i8, @out %y[1,1]:i8")
                  .toInts(),
              ElementsAre(44));
  EXPECT_THAT(run(constant("x", "bool", 3, "[true, true, false]") + output(1) +
                  "reduce.sum @in %x[1,3,1]:bool, @out %y[1,1]:bool")
                  .toInts(),
              ElementsAre(1));
  // Of nothing.
  const std::string none = constant("x", "f32", 1, "[1.0]") + output(4);
  EXPECT_THAT(floats(run(none + "reduce.prod @in %x[1,0,1]:f32, @out %y[1,1]:f32")),
              ElementsAre(1.0f));
  EXPECT_THAT(floats(run(none + "reduce.max @in %x[1,0,1]:f32, @out %y[1,1]:f32")),
              ElementsAre(-INFINITY));
  EXPECT_THAT(run(constant("x", "i16", 1, "[1]") + output(2) +
                  "reduce.min @in %x[1,0,1]:i16, @out %y[1,1]:i16")
                  .toInts(),
              ElementsAre(32767));
}

TEST(InterpMatmul, ZeroPointsAccumulationAndEpilogue) {
  const std::string ab = constant("a", "f32", 4, "[1.0, 2.0, 3.0, 4.0]") +
                         constant("b", "f32", 4, "[5.0, 6.0, 7.0, 8.0]") + output(16);
  EXPECT_THAT(floats(run(ab + "matmul @in %a[1,2,2]:f32, @in %b[1,2,2]:f32, @out %y[1,2,2]:f32")),
              ElementsAre(19, 22, 43, 50));
  EXPECT_THAT(
      floats(run(
          ab +
          "fill{value = 0x3f800000} @out %y[4]:f32\nmatmul{accumulate = 1} @in %a[1,2,2]:f32, @in "
          "%b[1,2,2]:f32, @inout %y[1,2,2]:f32")),
      ElementsAre(20, 23, 44, 51));
  EXPECT_THAT(
      floats(run(
          ab +
          "matmul @in %a[1,2,2]:f32, @in %b[1,2,2]:f32, @in %b[1,2,2]:f32 strides[0, 0, 1], @out "
          "%y[1,2,2]:f32 expr{max(sub(acc, mul(v2, 4.0)), 0.0)}")),
      ElementsAre(0, 0, 23, 26));
  // (a - 10) . (b - [1, 2])
  EXPECT_THAT(run(constant("a", "u8", 2, "[12, 9]") + constant("b", "i8", 4, "[2, 2, 4, -2]") +
                  constant("az", "u8", 1, "[10]") + constant("bz", "i8", 2, "[1, 2]") + output(8) +
                  "matmul @in %a[1,1,2]:u8, @in %b[1,2,2]:i8, @in %az[1]:u8, @in %bz[2]:i8, @out "
                  "%y[1,1,2]:i32")
                  .toInts(),
              ElementsAre(2 * 1 + -1 * 3, 2 * 0 + -1 * -4));
}

TEST(InterpUnary, Functions) {
  const auto unary = [](const std::string& fn, const std::string& x) {
    return floats(run(constant("x", "f32", 1, "[" + x + "]") + output(4) +
                      fmt::format("unary.{} @in %x[1]:f32, @out %y[1]:f32", fn)))[0];
  };
  EXPECT_EQ(unary("neg", "2.0"), -2.0f);
  EXPECT_EQ(unary("floor", "-0.5"), -1.0f);
  EXPECT_EQ(unary("round_even", "2.5"), 2.0f);
  EXPECT_EQ(unary("rcp", "4.0"), 0.25f);
  EXPECT_EQ(unary("rsqrt", "4.0"), 0.5f);
  EXPECT_EQ(unary("sqrt", "9.0"), 3.0f);
  EXPECT_TRUE(std::isnan(unary("sqrt", "-1.0")));
  EXPECT_EQ(unary("log", "0.0"), -INFINITY);
  EXPECT_FLOAT_EQ(unary("exp", "1.0"), 2.7182818f);
  EXPECT_FLOAT_EQ(unary("erf", "0.5"), 0.5204999f);
  EXPECT_FLOAT_EQ(unary("sigmoid", "-100.0"), 3.783506e-44f);
  EXPECT_FLOAT_EQ(unary("tanh", "0.5"), 0.46211716f);
}

TEST(InterpRescale, RoundsOnceHalfToEven) {
  const auto rescale = [](const std::string& a, int count, const std::string& rest) {
    return run(constant("a", "i32", count, a) + constant("m", "i32", 1, "[1]") +
               constant("s", "i32", 1, "[1]") + constant("z", "i32", 1, "[10]") +
               constant("b", "i32", 1, "[3]") + output(count) +
               fmt::format("rescale{1} @in %a[{0}]:i32, @in %m[{0}]:i32 strides[0], @in "
                           "%s[{0}]:i32 strides[0], @in "
                           "%z[{0}]:i32 strides[0]{2}, @out %y[{0}]:i8",
                           count, rest.substr(0, rest.find(';')), rest.substr(rest.find(';') + 1)))
        .toInts();
  };
  // a / 2 + 10: 0.5 -> 0, 1.5 -> 2, -0.5 -> 0, -1.5 -> -2
  EXPECT_THAT(rescale("[1, 3, -1, -3, 4, 1000]", 6, ";"), ElementsAre(10, 12, 10, 8, 12, 127));
  EXPECT_THAT(rescale("[1, 3, -1, -3, 4, 1000]", 6, "{clamp_min = 9, clamp_max = 11};"),
              ElementsAre(10, 11, 10, 9, 11, 11));
  // (a * 2^2 + 3 * 2^1) / 2 + 10: one rounding of the sum
  EXPECT_THAT(rescale("[1, -1]", 2,
                      "{a_left_shift = 2, b_left_shift = 1};, @in %b[2]:i32 strides[0], @in "
                      "%m[2]:i32 strides[0]"),
              ElementsAre(15, 11));
}

TEST(InterpTable, LooksUpAndInterpolates) {
  const std::string t = constant("t", "i8", 256, "iota(-128, 1)");
  EXPECT_THAT(run(t + constant("x", "i8", 3, "[-128, 0, 127]") + output(3) +
                  "table @in %x[3]:i8, @in %t[256]:i8, @out %y[3]:i8")
                  .toInts(),
              ElementsAre(-128, 0, 127));
  EXPECT_THAT(run(t + constant("x", "u8", 2, "[0, 255]") + output(2) +
                  "table @in %x[2]:u8, @in %t[256]:i8, @out %y[2]:i8")
                  .toInts(),
              ElementsAre(-128, 127));
  // Entries 3 apart: 128 steps of x make 3 of y. Position 64 of 128: (3 * 64 + 64) >> 7 = 2.
  EXPECT_THAT(run(constant("t", "i16", 513, "iota(-768, 3)") +
                  constant("x", "i16", 5, "[-32768, -32704, 0, 1, 32767]") + output(10) +
                  "table @in %x[5]:i16, @in %t[513]:i16, @out %y[5]:i16")
                  .toInts(),
              ElementsAre(-768, -766, 0, 0, 768));
}

TEST(InterpConv, GroupsPadsStridesAndTransposed) {
  // 1x1x3x3 of 1..9, kernel 2x2 of ones, pad 1 at the beginning, stride 2.
  const std::string x = constant("x", "f32", 9, "[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]");
  EXPECT_THAT(floats(run(x + constant("w", "f32", 4, "splat(1.0)") + output(16) +
                         "conv2d{strides = [2, 2], pads = [1, 1, 0, 0]} @in %x[1,1,3,3]:f32, @in "
                         "%w[1,1,2,2]:f32, @out %y[1,1,2,2]:f32")),
              ElementsAre(1, 5, 11, 28));
  // Depthwise: two channels of one element, weights 10 and 100.
  EXPECT_THAT(
      floats(
          run(x + constant("w", "f32", 2, "[10.0, 100.0]") + output(8) +
              "conv2d{group = 2} @in %x[1,2,1,1]:f32, @in %w[2,1,1,1]:f32, @out %y[1,2,1,1]:f32")),
      ElementsAre(10, 200));
  // Transposed, stride 2: every input element leaves a 2x2 print.
  EXPECT_THAT(floats(run(x + constant("w", "f32", 4, "[1.0, 2.0, 3.0, 4.0]") + output(32) +
                         "conv2d{strides = [2, 2], transposed = 1} @in %x[1,1,1,2]:f32, @in "
                         "%w[1,1,2,2]:f32, @out %y[1,1,2,4]:f32")),
              ElementsAre(1, 2, 2, 4, 3, 4, 6, 8));
  EXPECT_THAT(run(constant("x", "i8", 1, "[5]") + constant("w", "i8", 2, "[3, 4]") +
                  constant("xz", "i8", 1, "[2]") + constant("wz", "i8", 2, "[1, -1]") + output(8) +
                  "conv2d @in %x[1,1,1,1]:i8, @in %w[2,1,1,1]:i8, @in %xz[1]:i8, @in %wz[2]:i8, "
                  "@out %y[1,2,1,1]:i32")
                  .toInts(),
              ElementsAre(6, 15));
}

TEST(InterpPool, PaddingCountsOnlyWhenAsked) {
  const std::string x = constant("x", "f32", 4, "[-1.0, -2.0, -3.0, -4.0]") + output(16);
  const auto pool = [&](const std::string& words) {
    return floats(run(x + "pool2d." + words + " @in %x[1,1,2,2]:f32, @out %y[1,1,2,2]:f32"));
  };
  EXPECT_THAT(pool("max{kernel = [2, 2], pads = [1, 1, 0, 0]}"), ElementsAre(-1, -1, -1, -1));
  EXPECT_THAT(pool("average{kernel = [2, 2], pads = [1, 1, 0, 0]}"),
              ElementsAre(-1, -1.5, -2, -2.5));
  EXPECT_THAT(pool("average{kernel = [2, 2], pads = [1, 1, 0, 0], count_include_pad = 1}"),
              ElementsAre(-0.25, -0.75, -1, -2.5));
}

TEST(InterpElementwise, SharedStepsAndConversions) {
  const std::string x = constant("x", "f32", 3, "[-2.0, 0.0, 3.0]");
  EXPECT_THAT(floats(run(x + output(12) +
                         "elementwise @in %x[3]:f32, @out %y[3]:f32 expr{t0 = mul(v0, v0); t1 = "
                         "add(t0, 1.0); div(t0, t1)}")),
              ElementsAre(FloatNear(0.8f, 1e-7f), 0, FloatNear(0.9f, 1e-7f)));
  EXPECT_THAT(run(x + output(3) +
                  "elementwise @in %x[3]:f32, @out %y[3]:i8 expr{convert_i8_saturate(select(lt(v0, "
                  "0.0), mul(v0, 100.0), v0))}")
                  .toInts(),
              ElementsAre(-128, 0, 3));
}

TEST(InterpComposites, SoftmaxNormAttentionArgReduce) {
  const std::string x = constant("x", "f32", 4, "[0.0, 0.6931472, 1.0, 3.0]") + output(16);
  EXPECT_THAT(
      floats(run(x + "softmax.softmax @in %x[1,2,1]:f32, @out %y[1,2,1]:f32\nsoftmax.softmax @in "
                     "%x[1,2,1]:f32, @out %y[1,2,1]:f32 at 2")),
      ElementsAre(FloatNear(1 / 3.0f, 1e-6f), FloatNear(2 / 3.0f, 1e-6f),
                  FloatNear(1 / 3.0f, 1e-6f), FloatNear(2 / 3.0f, 1e-6f)));
  EXPECT_THAT(
      floats(run(constant("x", "f32", 2, "[1.0, 3.0]") + constant("s", "f32", 2, "[10.0, 1.0]") +
                 output(8) +
                 "norm.layer{epsilon = 0.0} @in %x[1,2]:f32, @in %s[2]:f32, @out %y[1,2]:f32")),
      ElementsAre(-10, 1));
  EXPECT_THAT(floats(run(constant("x", "f32", 2, "[1.0, 7.0]") + output(8) +
                         "norm.rms{epsilon = 0.0} @in %x[1,2]:f32, @out %y[1,2]:f32")),
              ElementsAre(FloatNear(0.2f, 1e-6f), FloatNear(1.4f, 1e-6f)));
  // Scores 0 and ln 2: weights 1/3 and 2/3 of the values 3 and 6.
  EXPECT_THAT(
      floats(run(constant("q", "f32", 1, "[1.0]") + constant("k", "f32", 2, "[0.0, 0.6931472]") +
                 constant("v", "f32", 2, "[3.0, 6.0]") + output(4) +
                 "attention{scale = 1.0} @in %q[1,1,1]:f32, @in %k[1,2,1]:f32, @in %v[1,2,1]:f32, "
                 "@out %y[1,1,1]:f32")),
      ElementsAre(FloatNear(5, 1e-5f)));
  const std::string ties = constant("x", "f32", 4, "[1.0, 5.0, 5.0, 2.0]") + output(4);
  EXPECT_THAT(run(ties + "arg_reduce.max @in %x[1,4,1]:f32, @out %y[1,1]:i32").toInts(),
              ElementsAre(1));
  EXPECT_THAT(
      run(ties + "arg_reduce.max{select_last = 1} @in %x[1,4,1]:f32, @out %y[1,1]:i32").toInts(),
      ElementsAre(2));
  EXPECT_THAT(run(ties + "arg_reduce.min @in %x[1,4,1]:f32, @out %y[1,1]:i32").toInts(),
              ElementsAre(0));
}

TEST(InterpSort, NoResultLiesOnTheOperand) {
  const auto parsed =
      parseBody("buffer %x inout @host 16\nbuffer %v temp @host 16\n"
                "sort.ascending @in %x[1,4,1]:f32, @out %v[1,4,1]:f32, @out %x[1,4,1]:i32");
  EXPECT_THAT(parsed.status().message(),
              ::testing::HasSubstr("its element 0 is overwritten through %x"));
}

TEST(InterpSort, WritesValuesAndPlaces) {
  const std::string x = constant("x", "f32", 5, "[2.0, nan, 1.0, 2.0, -3.0]") +
                        "buffer %v temp @host 16\n" + output(16);
  const std::string views = " @in %x[1,5,1]:f32, @out %v[1,4,1]:f32, @out %y[1,4,1]:i32";
  EXPECT_THAT(run(x + "sort.ascending" + views).toInts(), ElementsAre(4, 2, 0, 3));
  EXPECT_THAT(run(x + "sort.descending" + views).toInts(), ElementsAre(1, 0, 3, 2));
  const std::string values =
      constant("x", "i8", 4, "[1, -2, 3, 1]") + "buffer %i temp @host 16\n" + output(4);
  EXPECT_THAT(run(values + "sort.ascending @in %x[2,2,1]:i8, @out %y[2,2,1]:i8, @out %i[2,2,1]:i32")
                  .toInts(),
              ElementsAre(-2, 1, 1, 3));
}

} // namespace
} // namespace candela::test
