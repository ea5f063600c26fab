// What the verifier holds, by its messages.
#include <gtest/gtest.h>

#include "tests/unit/compiler/program/program_text.h"

namespace candela::test {
namespace {

// Buffers that the instructions below use: room for 64 elements of any type.
constexpr const char* kBuffers = R"(
  constant @k : i8[512] = splat(1)
  buffer %in input @host 512
  buffer %a temp @host 512
  buffer %b temp @host 512
  buffer %c temp @host 512
  buffer %y output @host 512
  buffer %s state @host 512
  buffer %k constant @host 512 = @k
)";

std::string error(const std::string& instrs) { return errorOf(kBuffers + instrs); }

struct Case {
  const char* instrs;
  const char* message; ///< empty: valid
};

class Verify : public ::testing::TestWithParam<Case> {};

TEST_P(Verify, Says) { EXPECT_EQ(error(GetParam().instrs), GetParam().message); }

INSTANTIATE_TEST_SUITE_P(
    Views, Verify,
    ::testing::Values(
        Case{"copy @in %a[4]:f32, @out %b[4]:f32", ""},
        Case{"copy @in %a[129]:f32, @out %b[129]:f32",
             "copy [1]: input 0 (%a): element 128 lies beyond its buffer's elements, 128"},
        Case{"copy @in %a[4]:f32 at 125, @out %b[4]:f32",
             "copy [1]: input 0 (%a): element 128 lies beyond its buffer's elements, 128"},
        Case{"copy @in %a[4]:f32 at 2 strides[-1], @out %b[4]:f32",
             "copy [1]: input 0 (%a): element -1 lies before its buffer"},
        Case{"copy @in %a[4]:f32 at 3 strides[-1], @out %b[4]:f32", ""},
        Case{"copy @in %a[0]:f32 at 128, @out %b[0]:f32", ""},
        Case{"copy @in %a[0]:f32 at 129, @out %b[0]:f32",
             "copy [1]: input 0 (%a): element 129 lies beyond its buffer's elements, 128"},
        Case{"copy @in %a[4]:f32 strides[0], @out %b[4]:f32", ""},
        Case{"copy @in %a[4]:f32, @out %b[4]:f32 strides[0]",
             "copy [1]: output 0 (%b): dims[0] 4 is written with stride 0"},
        Case{"copy @in %a[4]:f32, @out %in[4]:f32",
             "copy [1]: output 0 (%in): its buffer is an input and cannot be written"},
        Case{"copy @in %a[4]:f32, @out %k[4]:f32",
             "copy [1]: output 0 (%k): its buffer is a constant and cannot be written"},
        Case{"copy @in %a[4]:f32 strides[1, 1], @out %b[4]:f32",
             "copy [1]: input 0 (%a): 1 dims but 2 strides"},
        Case{"copy @in %a[1,1,1,1,1,1,1,1,1]:f32, @out %b[1]:f32",
             "copy [1]: input 0 (%a): a rank or count of 9 exceeds 8"},
        Case{"copy @in %a[-1]:f32, @out %b[1]:f32",
             "copy [1]: input 0 (%a): dims[0] -1 is not within 0 .. 1099511627776"},
        Case{"copy @in %a[1099511627776,1099511627776]:f32 strides[0,0], @out %b[1]:f32",
             "copy [1]: input 0 (%a): dims[1] 1099511627776 makes more elements than "
             "281474976710656"},
        Case{"copy @in %a[4]:f32 + 4*i0, @out %b[4]:f32",
             "copy [1]: input 0 (%a): stride of a loop variable 4 where there is no such loop, "
             "level 0"},
        Case{"copy @in %a[3]:i4, @out %b[3]:i4", ""},
        Case{"copy @in %a[3,0,1]:i2 strides[0,1,1], @out %b[3,0,1]:i2", ""}, // no element
        Case{"copy @in %a[2,3]:i4 strides[4,1], @out %b[2,3]:i4",
             "copy [1]: input 0 (%a): innermost extent of packed elements 3 is no multiple of 2"},
        Case{"copy @in %a[2]:i4 at 1, @out %b[2]:i4",
             "copy [1]: input 0 (%a): packed view at offset 1 does not start on whole bytes of "
             "elements, 2"},
        Case{"copy @in %a[2,4]:u2 strides[6,1], @out %b[2,4]:u2",
             "copy [1]: input 0 (%a): packed view at offset 0 does not start on whole bytes of "
             "elements, 4"},
        Case{"for 31 { copy @in %a[4]:f32 + 4*i0, @out %b[4]:f32 }", ""},
        Case{"for 33 { copy @in %a[4]:f32 + 4*i0, @out %b[4]:f32 }",
             "copy [1]: input 0 (%a): element 131 lies beyond its buffer's elements, 128"},
        Case{"for 2 { for 3 { copy @in %a[4]:f32 + 64*i0 + 30*i1, @out %b[4]:f32 } }", ""},
        Case{"for 2 { for 3 { copy @in %a[4]:f32 + 64*i0 + 31*i1, @out %b[4]:f32 } }",
             "copy [1]: input 0 (%a): element 129 lies beyond its buffer's elements, 128"},
        Case{"for 3 { copy @in %a[4]:f32 + -1*i0, @out %b[4]:f32 }",
             "copy [1]: input 0 (%a): element -2 lies before its buffer"}));

INSTANTIATE_TEST_SUITE_P(
    Kinds, Verify,
    ::testing::Values(
        Case{"copy @in %a[4]:f32, @out %b[5]:f32",
             "copy [1]: input 0 (%a): dims[0] 4 differs from the result's 5"},
        Case{"copy @in %a[4]:f32, @out %b[4]:i32",
             "copy [1]: the result has type i32, expected f32"},
        Case{"fill @out %a[4]:f32", "fill [1]: attribute value is missing"},
        Case{"fill{value = 0x100} @out %a[4]:i8",
             "fill [1]: value 256 exceeds the bits of its element type, 8"},
        Case{"fill{axis = 1} @out %a[4]:i8", "fill [1]: attribute axis is unknown for fill"},
        Case{"fill{value = 0x1, value = 0x1} @out %a[4]:i8",
             "fill [1]: value: attribute 3 stands twice"},
        Case{"fill{value = 1} @out %a[4]:i8", "fill [1]: value: type 1 is not 4"},
        Case{"convert.trunc{saturate = 2} @in %a[4]:f32, @out %b[4]:i8",
             "convert [1]: saturate: value 2 is not within 0 .. 1"},
        Case{"convert.trunc @in %a[4]:f32, @out %b[4]:i4", ""},
        Case{"binary.add @in %a[4]:f32, @out %b[4]:f32", "binary [1]: inputs 1 is below 2"},
        Case{"binary.add @in %a[4]:f32, @in %c[4]:i32, @out %b[4]:f32",
             "binary [1]: input 1 has type i32, expected f32"},
        Case{"binary.shl @in %a[4]:f32, @in %c[4]:f32, @out %b[4]:f32",
             "binary [1]: shl does not take f32"},
        Case{"binary.add @in %a[4]:bool, @in %c[4]:bool, @out %b[4]:bool",
             "binary [1]: add does not take bool"},
        Case{"binary.and @in %a[4]:bool, @in %c[4]:bool, @out %b[4]:bool", ""},
        Case{"binary.add @in %a[4]:f32, @in %c[4]:f32, @inout %b[4]:f32",
             "binary [1]: the kind never reads its result, expected @out"},
        Case{"compare.lt @in %a[4]:f32, @in %c[4]:f32, @out %b[4]:f32",
             "compare [1]: the result cannot have type f32"},
        Case{"select @in %a[4]:i32, @in %c[4]:f32, @in %c[4]:f32, @out %b[4]:f32",
             "select [1]: input 0 cannot have type i32"},
        Case{"gather.clamp @in %a[2,5,3]:f32, @in %b[4]:i32, @out %y[2,4,3]:f32", ""},
        Case{"gather.clamp @in %a[2,5,3]:f32, @in %b[4]:i32, @out %y[2,5,3]:f32",
             "gather [1]: input 1 (%b): dims[0] 4 is below the expected 5"},
        Case{"gather.clamp @in %a[2,5,3]:f32, @in %b[4]:f32, @out %y[2,4,3]:f32",
             "gather [1]: input 1 cannot have type f32"},
        Case{"gather.clamp @in %a[2,0,3]:f32, @in %b[4]:i32, @out %y[2,4,3]:f32",
             "gather [1]: no place to clamp an index to in x of shape 2x0x3"},
        Case{"scatter.add @in %b[4]:i32, @in %a[2,4,3]:f32, @out %y[2,5,3]:f32",
             "scatter [1]: the result is @out, expected @inout"},
        Case{"scatter.add @in %b[4]:i32, @in %a[2,4,3]:f32, @inout %y[2,5,3]:f32", ""},
        Case{"reduce.sum @in %a[2,3,4]:f32, @out %b[2,3]:f32",
             "reduce [1]: input 0 (%a): dims[2] 4 is above the expected 3"},
        Case{"reduce.sum @in %a[2,3]:f32, @out %b[2]:f32",
             "reduce [1]: output 0 (%b): rank 1 is not 2"},
        Case{"reduce.sum @in %a[2,3,4]:i8, @out %b[2,4]:i32",
             "reduce [1]: input 0 has type i8 but its reduction i32"},
        Case{
            "matmul @in %a[1,2,16]:f32, @in %b[1,8,2]:f32, @out %y[1,2,2]:f32 from \"Conv_0\":conv",
            "matmul [1] 'Conv_0': input 1 (%b): dims[1] 8 is below the expected 16"},
        Case{"matmul @in %a[1,2,8]:i8, @in %b[1,8,2]:i8, @out %y[1,2,2]:i8",
             "matmul [1]: no product of i8 and i8 gives i8"},
        Case{"matmul @in %a[1,2,8]:u8, @in %b[1,8,2]:i8, @in %c[1]:u8, @in %c[2]:i8, @out "
             "%y[1,2,2]:i32",
             ""},
        Case{"matmul @in %a[1,2,8]:u8, @in %b[1,8,2]:i8, @in %c[2]:u8, @out %y[1,2,2]:i32",
             "matmul [1]: input 2 (%c): elements of a zero point 2 are not 1"},
        Case{"matmul @in %a[1,2,8]:f32, @in %b[1,8,2]:f32, @in %c[1]:f32, @out %y[1,2,2]:f32",
             "matmul [1]: an operand with a zero point cannot have type f32"},
        Case{"matmul{accumulate = 1} @in %a[1,2,8]:f32, @in %b[1,8,2]:f32, @out %y[1,2,2]:f32",
             "matmul [1]: the result is @out but accumulate is 1"},
        Case{"matmul{accumulate = 1} @in %a[1,2,8]:f32, @in %b[1,8,2]:f32, @inout %y[1,2,2]:f32",
             ""},
        Case{"unary.exp @in %a[4]:i32, @out %b[4]:i32", "unary [1]: exp does not take i32"},
        Case{"unary.neg @in %a[4]:u8, @out %b[4]:u8", "unary [1]: neg does not take u8"},
        Case{"rescale @in %a[4]:i32, @in %b[4]:i32, @in %b[4]:i32, @in %b[4]:i32, @in %a[4]:i32, "
             "@out %y[4]:i8",
             "rescale [1]: operands 5 are neither 4 nor 6"},
        Case{"rescale{a_left_shift = 9} @in %a[4]:i32, @in %b[4]:i32, @in %b[4]:i32, @in "
             "%b[4]:i32, @out %y[4]:i8",
             "rescale [1]: a of type i32 with left shift 9 needs 64 bits, at most 63"},
        Case{"rescale{clamp_max = 128} @in %a[4]:i32, @in %b[4]:i32, @in %b[4]:i32, @in %b[4]:i32, "
             "@out %y[4]:i8",
             "rescale [1]: clamps to -128 .. 128, which i8 does not hold"},
        Case{"table @in %a[4]:i8, @in %k[255]:i8, @out %y[4]:i8",
             "table [1]: input 1 (%k): dims[0] 255 is below the expected 256"},
        Case{"table @in %a[4]:i32, @in %k[256]:i8, @out %y[4]:i8",
             "table [1]: input 0 cannot have type i32"},
        Case{"conv2d @in %a[1,2,4,4]:f32, @in %b[3,2,3,3]:f32, @out %y[1,3,2,2]:f32", ""},
        Case{"conv2d @in %a[1,2,4,4]:f32, @in %b[3,1,3,3]:f32, @out %y[1,3,2,2]:f32 from "
             "\"Conv_12\":conv",
             "conv2d [1] 'Conv_12': channels 2 are not group times the weight's 1"},
        Case{"conv2d @in %a[1,2,4,4]:f32, @in %b[3,2,3,3]:f32, @out %y[1,3,2,3]:f32",
             "conv2d [1]: output 0 (%y): dims[3] 3 is above the expected 2"},
        Case{"conv2d @in %a[1,2,2,4]:f32, @in %b[3,2,3,3]:f32, @out %y[1,3,1,2]:f32",
             "conv2d [1]: spatial dim 0: kernel of 3 is larger than the padded input of 2"},
        Case{"conv2d{strides = [1, 0]} @in %a[1,2,4,4]:f32, @in %b[3,2,3,3]:f32, @out "
             "%y[1,3,2,2]:f32",
             "conv2d [1]: strides: value 0 is not within 1 .. 2147483647"},
        Case{"conv2d @in %a[1,1,2,2,4]:f32{n,c/4,h,w,c%4}, @in %b[3,3,1,1]:f32, @out "
             "%y[1,1,2,2,4]:f32{n,c/4,h,w,c%4}",
             ""},
        Case{"conv2d @in %a[1,1,2,2,4]:f32{n,c/4,h,w,c%4}, @in %b[5,3,1,1]:f32, @out "
             "%y[1,1,2,2,4]:f32{n,c/4,h,w,c%4}",
             "conv2d [1]: input 1 (%b): dims[0] 5 is above the expected 4"},
        Case{"pool2d.max @in %a[1,2,4,4]:f32, @out %y[1,2,2,2]:f32",
             "pool2d [1]: attribute kernel is missing"},
        Case{"pool2d.average{kernel = [2, 2]} @in %a[1,2,3,3]:i8, @out %y[1,2,2,2]:i8",
             "pool2d [1]: average does not take i8"},
        Case{"softmax.softmax @in %a[2,3]:f32, @out %y[2,3]:f32",
             "softmax [1]: output 0 (%y): rank 2 is not 3"},
        Case{"norm.layer @in %a[2,3]:f32, @in %b[2]:f32, @out %y[2,3]:f32",
             "norm [1]: input 1 (%b): dims[0] 2 is below the expected 3"},
        Case{
            "attention @in %a[1,2,4]:f32, @in %b[1,3,5]:f32, @in %c[1,3,4]:f32, @out %y[1,2,4]:f32",
            "attention [1]: input 1 (%b): dims[2] 5 is above the expected 4"},
        Case{"arg_reduce.max @in %a[2,0,3]:f32, @out %y[2,3]:i64",
             "arg_reduce [1]: no extreme along x of shape 2x0x3"},
        Case{"arg_reduce.max @in %a[2,4,3]:f32, @out %y[2,3]:f32",
             "arg_reduce [1]: the result cannot have type f32"},
        Case{"sort.ascending @in %a[2,4,3]:f32, @out %b[2,5,3]:f32, @out %y[2,5,3]:i32",
             "sort [1]: elements kept 5 are more than the 4"},
        Case{"sort.ascending @in %a[2,4,3]:f32, @out %b[2,2,3]:f32, @out %y[2,2,3]:i64",
             "sort [1]: result 1 cannot have type i64"},
        Case{"sort.ascending @in %a[2,4,3]:f32, @out %b[2,2,3]:f32, @out %y[2,3,3]:i32",
             "sort [1]: output 1 (%y): dims[1] 3 is above the expected 2"},
        Case{"sort.ascending @in %a[2,4,3]:f32, @out %b[2,2,3]:f32",
             "sort [1]: outputs 1 is not 2"},
        Case{"custom.7{attr200 = [1, 2]} @in %a[3]:i4 at 1, @out %y[3]:f32",
             "custom [1]: input 0 (%a): packed view at offset 1 does not start on whole bytes of "
             "elements, 2"}));

INSTANTIATE_TEST_SUITE_P(
    Expressions, Verify,
    ::testing::Values(
        Case{"elementwise @in %a[4]:f32, @out %y[4]:f32", "elementwise [1]: expr 0 is missing"},
        Case{"elementwise @in %a[4]:f32, @out %y[4]:f32 expr{add(v0, acc)}", "no accumulator here"},
        Case{"copy @in %a[4]:f32, @out %y[4]:f32 expr{neg(acc)}",
             "copy [1]: expr on copy which takes none"},
        Case{"elementwise @in %a[4]:f32, @out %y[4]:f32 expr{add(v0, v1)}",
             "v1 but only 1 operands"},
        Case{"elementwise @in %a[4]:f32, @out %y[4]:i32 expr{neg(v0)}",
             "elementwise [1]: type f32 of the expr differs from the result's i32"},
        Case{"elementwise @in %a[4]:f32, @out %y[4]:i8 expr{convert_i8_rne_saturate(mul(v0, 0.5))}",
             ""},
        Case{"matmul @in %a[1,2,8]:f32, @in %b[1,8,2]:f32, @in %c[1,2,2]:f32, @out %y[1,2,2]:f32 "
             "expr{max(add(acc, v2), 0.0)}",
             ""},
        Case{"matmul @in %a[1,2,8]:f32, @in %b[1,8,2]:f32, @in %c[1,2,3]:f32, @out %y[1,2,2]:f32 "
             "expr{max(add(acc, v2), 0.0)}",
             "matmul [1]: input 2 (%c): dims[2] 3 differs from the result's 2"},
        Case{"matmul @in %a[1,2,8]:i8, @in %b[1,8,2]:i8, @out %y[1,2,2]:f32 expr(acc "
             "i32){mul(convert_f32(acc), 0.5)}",
             ""},
        Case{"matmul @in %a[1,2,8]:i8, @in %b[1,8,2]:i8, @out %y[1,2,2]:f32 expr(acc "
             "i64){mul(convert_f32(acc), 0.5)}",
             "matmul [1]: no product of i8 and i8 gives i64"}));

INSTANTIATE_TEST_SUITE_P(
    Order, Verify,
    ::testing::Values(
        Case{"copy @in %a[4]:f32, @out %b[4]:f32\ncopy @in %b[4]:f32, @out %y[4]:f32 waits(1)", ""},
        Case{"copy @in %a[4]:f32, @out %b[4]:f32 waits(1)",
             "copy [1]: wait 1 is not earlier than instruction 1"},
        Case{"copy @in %a[4]:f32, @out %b[4]:f32\nfor 2 { copy @in %b[4]:f32, @out %y[4]:f32 "
             "waits(1) }",
             "copy [2]: wait 1 stands in another block"},
        Case{"copy @in %a[4]:f32, @out %b[4]:f32 engine 2", "copy [1]: engine 2 is not below 2"},
        Case{"for 0 { copy @in %a[4]:f32, @out %b[4]:f32 }",
             "loop 1: trip 0 is not within 1 .. 1099511627776"},
        Case{"group dim 9 bands 1 { copy @in %a[4]:f32, @out %b[4]:f32 }",
             "group 1: band_dim 9 exceeds 7"}));

TEST(VerifyDeclarations, AreHeld) {
  EXPECT_EQ(errorOf("buffer %x temp @host 8 align 3"),
            "buffer 'x': alignment 3 is not a power of two");
  EXPECT_EQ(errorOf("buffer %x temp @host 8 align 64 at 32"),
            "buffer 'x': offset 32 is not a multiple of the alignment 64");
  EXPECT_EQ(errorOf("space @small {capacity 100, align 4}\nbuffer %x temp @small 60 at 64"),
            "buffer 'x': end 124 exceeds the capacity of its space, 100");
  EXPECT_EQ(errorOf("space @small {capacity 100, align 4}\nbuffer %x input @small 60"),
            "buffer 'x': its space small is not the default one of bound buffers, host");
  EXPECT_EQ(errorOf("constant @c : f32[2] = [1.0, 2.0]\nbuffer %x constant @host 9 = @c"),
            "buffer 'x': bytes 9 differs from its constant's bytes, 8");
  EXPECT_EQ(errorOf("buffer %x constant @host 9"),
            "buffer 'x': constant of a constant buffer 0 names no record");
  EXPECT_EQ(errorOf("buffer %x input @host 8 at 64"),
            "buffer 'x': offset of a bound buffer 64 must be 0");
  EXPECT_EQ(errorOf("buffer %x temp @host 8 halo(f32, [1], [1, 2], 0.0)"),
            "buffer 'x': 1 lower widths but 2 upper ones");
  EXPECT_EQ(errorOf("buffer %x temp @host 2 align 1\ncopy @in %x[1]:f16, @out %x[1]:f16"),
            "copy [1]: input 0 (%x): alignment of its buffer 1 is below the element's 2");
}

/// What the text cannot say wrongly.
TEST(VerifyPrograms, WithoutText) {
  auto parsed = parseBody("buffer %x temp @host 8\nbuffer %y temp @host 8\n"
                          "for 2 { copy @in %x[2]:f32, @out %y[2]:f32 }\n"
                          "group dim 0 bands 2 { copy @in %y[2]:f32, @out %x[2]:f32 }");
  ASSERT_TRUE(parsed) << parsed.status().message();
  const program::Program whole = *parsed;
  ASSERT_TRUE(program::verify(whole));
  const auto broken = [&](auto change) {
    program::Program program = whole;
    change(program);
    return program::verify(program).message();
  };
  EXPECT_EQ(broken([](program::Program& p) { p.instrs[0].loop = program::kNone; }),
            "loop 1: instruction 1 of its range names another loop: 0");
  EXPECT_EQ(broken([](program::Program& p) { p.instrs[1].loop = 0; }),
            "copy [2]: loop 1 does not hold it");
  EXPECT_EQ(broken([](program::Program& p) { p.instrs[1].group = 7; }),
            "copy [2]: group 8 is not below the section's count 2");
  EXPECT_EQ(broken([](program::Program& p) { p.loops[0].count = UINT32_MAX; }),
            "loop 1: instructions 4294967296 ends beyond the section's count 3");
  EXPECT_EQ(broken([](program::Program& p) { p.loops[0].parent = 0; }),
            "loop 1: parent 1 is not below its own index 1");
  EXPECT_EQ(broken([](program::Program& p) { p.buffers[1].name = "x"; }),
            "two buffers are named 'x'");
  EXPECT_EQ(broken([](program::Program& p) { p.buffers[0].name = std::string("a\0b", 3); }),
            "buffer 'a': a NUL byte in the name 'a'");
  EXPECT_EQ(broken([](program::Program& p) { p.instrs[0].kind = 99; }),
            "kind 99 [1]: kind 99 is unknown");
  EXPECT_EQ(broken([](program::Program& p) { p.instrs[0].fn = 1; }),
            "copy [1]: fn 1 is unknown for kind 1");
  EXPECT_EQ(broken([](program::Program& p) { p.instrs[0].inputs[0].buffer = 9; }),
            "copy [1]: input 0: buffer 10 is not below the section's count 3");
  EXPECT_EQ(broken([](program::Program& p) { p.instrs[0].inputs[0].elem = static_cast<Elem>(99); }),
            "copy [1]: input 0 (%x): elem 99 is no element type");
  EXPECT_EQ(broken([](program::Program& p) { p.instrs[0].outputs.clear(); }),
            "copy [1]: outputs 0 is not 1");
  EXPECT_EQ(broken([](program::Program& p) { p.groups[0].first = 0, p.groups[0].count = 2; }),
            "group 1: copy [1] lies in its range but names another group");
  EXPECT_EQ(broken([](program::Program& p) { p.engines = 0; }),
            "program: engines 0 is not within 1 .. 65535");
  EXPECT_EQ(broken([](program::Program& p) { p.spaces.clear(); }), "no memory space is declared");
}

} // namespace
} // namespace candela::test
