// What the verifier holds, by its messages.
#include <gtest/gtest.h>

#include "tests/unit/program/program_text.h"

namespace candela::test {
namespace {

using namespace program;

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
             "copy [1]: input 0: element 128 lies beyond buffer 'a' of 128 elements"},
        Case{"copy @in %a[4]:f32 at 125, @out %b[4]:f32",
             "copy [1]: input 0: element 128 lies beyond buffer 'a' of 128 elements"},
        Case{"copy @in %a[4]:f32 at 2 strides[-1], @out %b[4]:f32",
             "copy [1]: input 0: element -1 lies before buffer 'a'"},
        Case{"copy @in %a[4]:f32 at 3 strides[-1], @out %b[4]:f32", ""},
        Case{"copy @in %a[0]:f32 at 128, @out %b[0]:f32", ""},
        Case{"copy @in %a[0]:f32 at 129, @out %b[0]:f32",
             "copy [1]: input 0: element 129 lies beyond buffer 'a' of 128 elements"},
        Case{"copy @in %a[4]:f32 strides[0], @out %b[4]:f32", ""},
        Case{"copy @in %a[4]:f32, @out %b[4]:f32 strides[0]",
             "copy [1]: output 0: dim 0 of extent 4 is written with stride 0"},
        Case{"copy @in %a[4]:f32, @out %in[4]:f32",
             "copy [1]: output 0: buffer 'in' is an input and cannot be written"},
        Case{"copy @in %a[4]:f32, @out %k[4]:f32",
             "copy [1]: output 0: buffer 'k' is a constant and cannot be written"},
        Case{"copy @in %a[4]:f32 strides[1, 1], @out %b[4]:f32", "copy [1]: input 0: 1 dims but 2 strides"},
        Case{"copy @in %a[1,1,1,1,1,1,1,1,1]:f32, @out %b[1]:f32", "copy [1]: input 0: rank 9 exceeds 8"},
        Case{"copy @in %a[-1]:f32, @out %b[1]:f32", "copy [1]: input 0: dim -1 is not within 0 .. 1099511627776"},
        Case{"copy @in %a[1099511627776,1099511627776]:f32 strides[0,0], @out %b[1]:f32",
             "copy [1]: input 0: shape 1099511627776x1099511627776 has too many elements"},
        Case{"copy @in %a[4]:f32 + 4*i0, @out %b[4]:f32", "copy [1]: input 0: stride 4 of loop 0 which is not there"},
        Case{"copy @in %a[3]:i4, @out %b[3]:i4", "copy [1]: input 0: i4 needs an even innermost extent of stride 1"},
        Case{"copy @in %a[2]:i4 at 1, @out %b[2]:i4", "copy [1]: input 0: an odd offset or stride of i4"},
        Case{"for 31 { copy @in %a[4]:f32 + 4*i0, @out %b[4]:f32 }", ""},
        Case{"for 33 { copy @in %a[4]:f32 + 4*i0, @out %b[4]:f32 }",
             "copy [1]: input 0: element 131 lies beyond buffer 'a' of 128 elements"},
        Case{"for 2 { for 3 { copy @in %a[4]:f32 + 64*i0 + 30*i1, @out %b[4]:f32 } }", ""},
        Case{"for 2 { for 3 { copy @in %a[4]:f32 + 64*i0 + 31*i1, @out %b[4]:f32 } }",
             "copy [1]: input 0: element 129 lies beyond buffer 'a' of 128 elements"},
        Case{"for 3 { copy @in %a[4]:f32 + -1*i0, @out %b[4]:f32 }",
             "copy [1]: input 0: element -2 lies before buffer 'a'"}));

INSTANTIATE_TEST_SUITE_P(
    Kinds, Verify,
    ::testing::Values(
        Case{"copy @in %a[4]:f32, @out %b[5]:f32", "copy [1]: input 0 has shape 4 but the result 5"},
        Case{"copy @in %a[4]:f32, @out %b[4]:i32", "copy [1]: x has type f32 but y has i32"},
        Case{"fill @out %a[4]:f32", "fill [1]: attribute value is missing"},
        Case{"fill{value = 0x100} @out %a[4]:i8", "fill [1]: attribute value: 0x100 has more bits than i8"},
        Case{"fill{axis = 1} @out %a[4]:i8", "fill [1]: attribute axis: the kind does not take it"},
        Case{"fill{value = 0x1, value = 0x1} @out %a[4]:i8", "fill [1]: attribute value stands twice"},
        Case{"fill{value = 1} @out %a[4]:i8", "fill [1]: attribute value: type 1, expected 4"},
        Case{"convert.trunc{saturate = 2} @in %a[4]:f32, @out %b[4]:i8",
             "convert [1]: attribute saturate: 2 is not within 0 .. 1"},
        Case{"convert.trunc @in %a[4]:f32, @out %b[4]:i4", "convert [1]: y cannot have type i4"},
        Case{"binary.add @in %a[4]:f32, @out %b[4]:f32", "binary [1]: 1 inputs, expected 2"},
        Case{"binary.add @in %a[4]:f32, @in %c[4]:i32, @out %b[4]:f32", "binary [1]: a has type f32 but b has i32"},
        Case{"binary.shl @in %a[4]:f32, @in %c[4]:f32, @out %b[4]:f32", "binary [1]: a cannot have type f32"},
        Case{"binary.add @in %a[4]:bool, @in %c[4]:bool, @out %b[4]:bool", "binary [1]: a cannot have type bool"},
        Case{"binary.and @in %a[4]:bool, @in %c[4]:bool, @out %b[4]:bool", ""},
        Case{"binary.add @in %a[4]:f32, @in %c[4]:f32, @inout %b[4]:f32",
             "binary [1]: the kind never reads its result, expected @out"},
        Case{"compare.lt @in %a[4]:f32, @in %c[4]:f32, @out %b[4]:f32", "compare [1]: y cannot have type f32"},
        Case{"select @in %a[4]:i32, @in %c[4]:f32, @in %c[4]:f32, @out %b[4]:f32",
             "select [1]: cond cannot have type i32"},
        Case{"gather.clamp @in %a[2,5,3]:f32, @in %b[4]:i32, @out %y[2,4,3]:f32", ""},
        Case{"gather.clamp @in %a[2,5,3]:f32, @in %b[4]:i32, @out %y[2,5,3]:f32",
             "gather [1]: numbers of indices 4 and 5 differ"},
        Case{"gather.clamp @in %a[2,5,3]:f32, @in %b[4]:f32, @out %y[2,4,3]:f32",
             "gather [1]: index cannot have type f32"},
        Case{"gather.clamp @in %a[2,0,3]:f32, @in %b[4]:i32, @out %y[2,4,3]:f32",
             "gather [1]: no place to clamp an index to in x of shape 2x0x3"},
        Case{"scatter.add @in %b[4]:i32, @in %a[2,4,3]:f32, @out %y[2,5,3]:f32",
             "scatter [1]: the result is @out, expected @inout"},
        Case{"scatter.add @in %b[4]:i32, @in %a[2,4,3]:f32, @inout %y[2,5,3]:f32", ""},
        Case{"reduce.sum @in %a[2,3,4]:f32, @out %b[2,3]:f32", "reduce [1]: inner dims 4 and 3 differ"},
        Case{"reduce.sum @in %a[2,3]:f32, @out %b[2]:f32", "reduce [1]: x has rank 2, expected 3"},
        Case{"reduce.sum @in %a[2,3,4]:i8, @out %b[2,4]:i32", "reduce [1]: x has type i8 but its reduction i32"},
        Case{"matmul @in %a[1,2,16]:f32, @in %b[1,8,2]:f32, @out %y[1,2,2]:f32 from \"Conv_0\":conv",
             "matmul [1] 'Conv_0': inner dims 16 and 8 differ"},
        Case{"matmul @in %a[1,2,8]:i8, @in %b[1,8,2]:i8, @out %y[1,2,2]:i8",
             "matmul [1]: no product of i8 and i8 gives i8"},
        Case{"matmul @in %a[1,2,8]:u8, @in %b[1,8,2]:i8, @in %c[1]:u8, @in %c[2]:i8, @out "
             "%y[1,2,2]:i32",
             ""},
        Case{"matmul @in %a[1,2,8]:u8, @in %b[1,8,2]:i8, @in %c[2]:u8, @out %y[1,2,2]:i32",
             "matmul [1]: zero point has 2 elements, expected 1 or 1"},
        Case{"matmul @in %a[1,2,8]:f32, @in %b[1,8,2]:f32, @in %c[1]:f32, @out %y[1,2,2]:f32",
             "matmul [1]: operand with a zero point cannot have type f32"},
        Case{"matmul{accumulate = 1} @in %a[1,2,8]:f32, @in %b[1,8,2]:f32, @out %y[1,2,2]:f32",
             "matmul [1]: the result is @out but accumulate is 1"},
        Case{"matmul{accumulate = 1} @in %a[1,2,8]:f32, @in %b[1,8,2]:f32, @inout %y[1,2,2]:f32", ""},
        Case{"unary.exp @in %a[4]:i32, @out %b[4]:i32", "unary [1]: x cannot have type i32"},
        Case{"unary.neg @in %a[4]:u8, @out %b[4]:u8", "unary [1]: x cannot have type u8"},
        Case{"rescale @in %a[4]:i32, @in %b[4]:i32, @in %b[4]:i32, @in %b[4]:i32, @in %a[4]:i32, "
             "@out %y[4]:i8",
             "rescale [1]: 5 inputs, expected 4 or 6"},
        Case{"rescale{a_left_shift = 9} @in %a[4]:i32, @in %b[4]:i32, @in %b[4]:i32, @in "
             "%b[4]:i32, @out %y[4]:i8",
             "rescale [1]: a of type i32 with left shift 9 needs 64 bits, at most 63"},
        Case{"rescale{clamp_max = 128} @in %a[4]:i32, @in %b[4]:i32, @in %b[4]:i32, @in %b[4]:i32, "
             "@out %y[4]:i8",
             "rescale [1]: clamps to -128 .. 128, which i8 does not hold"},
        Case{"table @in %a[4]:i8, @in %k[255]:i8, @out %y[4]:i8",
             "table [1]: numbers of table entries 255 and 256 differ"},
        Case{"table @in %a[4]:i32, @in %k[256]:i8, @out %y[4]:i8", "table [1]: x cannot have type i32"},
        Case{"conv2d @in %a[1,2,4,4]:f32, @in %b[3,2,3,3]:f32, @out %y[1,3,2,2]:f32", ""},
        Case{"conv2d @in %a[1,2,4,4]:f32, @in %b[3,1,3,3]:f32, @out %y[1,3,2,2]:f32 from "
             "\"Conv_12\":conv",
             "conv2d [1] 'Conv_12': input has 2 channels but weight expects 1 x group 1"},
        Case{"conv2d @in %a[1,2,4,4]:f32, @in %b[3,2,3,3]:f32, @out %y[1,3,2,3]:f32",
             "conv2d [1]: the result's spatial dim 1 is 3, expected 2"},
        Case{"conv2d @in %a[1,2,2,4]:f32, @in %b[3,2,3,3]:f32, @out %y[1,3,1,2]:f32",
             "conv2d [1]: kernel of 3 is larger than the padded input of 2 in spatial dim 0"},
        Case{"conv2d{strides = [1, 0]} @in %a[1,2,4,4]:f32, @in %b[3,2,3,3]:f32, @out "
             "%y[1,3,2,2]:f32",
             "conv2d [1]: attribute strides: 0 is not within 1 .. 2147483647"},
        Case{"conv2d @in %a[1,1,2,2,4]:f32{n,c/4,h,w,c%4}, @in %b[3,3,1,1]:f32, @out "
             "%y[1,1,2,2,4]:f32{n,c/4,h,w,c%4}",
             ""},
        Case{"conv2d @in %a[1,1,2,2,4]:f32{n,c/4,h,w,c%4}, @in %b[5,3,1,1]:f32, @out "
             "%y[1,1,2,2,4]:f32{n,c/4,h,w,c%4}",
             "conv2d [1]: channels of y and w, 1..4 and 5 differ"},
        Case{"pool2d.max @in %a[1,2,4,4]:f32, @out %y[1,2,2,2]:f32", "pool2d [1]: attribute kernel is missing"},
        Case{"pool2d.average{kernel = [2, 2]} @in %a[1,2,3,3]:i8, @out %y[1,2,2,2]:i8",
             "pool2d [1]: x cannot have type i8"},
        Case{"softmax.softmax @in %a[2,3]:f32, @out %y[2,3]:f32", "softmax [1]: x has rank 2, expected 3"},
        Case{"norm.layer @in %a[2,3]:f32, @in %b[2]:f32, @out %y[2,3]:f32",
             "norm [1]: lengths of rows and scale or bias, 3 and 2 differ"},
        Case{"attention @in %a[1,2,4]:f32, @in %b[1,3,5]:f32, @in %c[1,3,4]:f32, @out %y[1,2,4]:f32",
             "attention [1]: depths of q and k, 4 and 5 differ"},
        Case{"arg_reduce.max @in %a[2,0,3]:f32, @out %y[2,3]:i64", "arg_reduce [1]: no extreme along x of shape 2x0x3"},
        Case{"sort.ascending @in %a[2,4,3]:f32, @out %b[2,5,3]:f32, @out %y[2,5,3]:i32",
             "sort [1]: keeps 5 of 4 elements"},
        Case{"sort.ascending @in %a[2,4,3]:f32, @out %b[2,2,3]:f32, @out %y[2,2,3]:i64",
             "sort [1]: index cannot have type i64"},
        Case{"sort.ascending @in %a[2,4,3]:f32, @out %b[2,2,3]:f32, @out %y[2,3,3]:i32",
             "sort [1]: y has shape 2x2x3 but index 2x3x3"},
        Case{"sort.ascending @in %a[2,4,3]:f32, @out %b[2,2,3]:f32", "sort [1]: 1 outputs, expected 2"},
        Case{"arg_reduce.max @in %a[2,4,3]:f32, @out %y[2,3]:f32", "arg_reduce [1]: y cannot have type f32"},
        Case{"custom.7{attr200 = [1, 2]} @in %a[3]:i4 at 0, @out %y[3]:f32",
             "custom [1]: input 0: i4 needs an even innermost extent of stride 1"}));

INSTANTIATE_TEST_SUITE_P(
    Expressions, Verify,
    ::testing::Values(Case{"elementwise @in %a[4]:f32, @out %y[4]:f32", "elementwise [1]: no expression"},
                      Case{"elementwise @in %a[4]:f32, @out %y[4]:f32 expr{add(v0, acc)}", "no accumulator here"},
                      Case{"copy @in %a[4]:f32, @out %y[4]:f32 expr{neg(acc)}",
                           "copy [1]: the kind takes no expression"},
                      Case{"elementwise @in %a[4]:f32, @out %y[4]:f32 expr{add(v0, v1)}", "v1 but only 1 operands"},
                      Case{"elementwise @in %a[4]:f32, @out %y[4]:i32 expr{neg(v0)}",
                           "elementwise [1]: expression of type f32 but the result has i32"},
                      Case{"elementwise @in %a[4]:f32, @out %y[4]:i8 expr{convert_i8_rne_saturate(mul(v0, 0.5))}", ""},
                      Case{"matmul @in %a[1,2,8]:f32, @in %b[1,8,2]:f32, @in %c[1,2,2]:f32, @out %y[1,2,2]:f32 "
                           "expr{max(add(acc, v2), 0.0)}",
                           ""},
                      Case{"matmul @in %a[1,2,8]:f32, @in %b[1,8,2]:f32, @in %c[1,2,3]:f32, @out %y[1,2,2]:f32 "
                           "expr{max(add(acc, v2), 0.0)}",
                           "matmul [1]: step 0: view 2 has shape 1x2x3 but the result 1x2x2"},
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
        Case{"copy @in %a[4]:f32, @out %b[4]:f32 waits(1)", "copy [1]: waits for instruction 1, which is not earlier"},
        Case{"copy @in %a[4]:f32, @out %b[4]:f32\nfor 2 { copy @in %b[4]:f32, @out %y[4]:f32 "
             "waits(1) }",
             "copy [2]: waits for instruction 1, which stands in another block"},
        Case{"copy @in %a[4]:f32, @out %b[4]:f32 engine 2", "copy [1]: engine 2 of 2"},
        Case{"for 0 { copy @in %a[4]:f32, @out %b[4]:f32 }", "loop 1: trip count 0 is not within 1 .. 1099511627776"},
        Case{"group dim 9 bands 1 { copy @in %a[4]:f32, @out %b[4]:f32 }",
             "group 1: band dim 9 and 1 bands, expected below 8 and at least 1"}));

TEST(VerifyDeclarations, AreHeld) {
  EXPECT_EQ(errorOf("buffer %x temp @host 8 align 3"), "buffer 'x': alignment 3 is no power of two");
  EXPECT_EQ(errorOf("buffer %x temp @host 8 align 64 at 32"),
            "buffer 'x': offset 32 is not a multiple of alignment 64");
  EXPECT_EQ(errorOf("space @small {capacity 100, align 4}\nbuffer %x temp @small 60 at 64"),
            "buffer 'x': ends at 124 but space 'small' has 100 bytes");
  EXPECT_EQ(errorOf("space @small {capacity 100, align 4}\nbuffer %x input @small 60"),
            "buffer 'x': lies in space 'small' but all that is no temp lies in 'host'");
  EXPECT_EQ(errorOf("constant @c : f32[2] = [1.0, 2.0]\nbuffer %x constant @host 9 = @c"),
            "buffer 'x': 9 bytes but its constant has 8");
  EXPECT_EQ(errorOf("buffer %x constant @host 9"), "buffer 'x': a constant buffer without a constant");
  EXPECT_EQ(errorOf("buffer %x input @host 8 at 64"), "buffer 'x': offset 64 on a buffer that is no temp");
  EXPECT_EQ(errorOf("buffer %x temp @host 8 halo(f32, [1], [1, 2], 0.0)"),
            "buffer 'x': halo has 1 lower and 2 upper widths, expected as many, 1 to 8");
  EXPECT_EQ(errorOf("buffer %x temp @host 2 align 1\ncopy @in %x[1]:f16, @out %x[1]:f16"),
            "copy [1]: input 0: buffer 'x' is aligned to 1 bytes, f16 has 16 bits");
}

/// What the text cannot say wrongly.
TEST(VerifyPrograms, WithoutText) {
  auto parsed = parseBody("buffer %x temp @host 8\nbuffer %y temp @host 8\n"
                          "for 2 { copy @in %x[2]:f32, @out %y[2]:f32 }\n"
                          "group dim 0 bands 2 { copy @in %y[2]:f32, @out %x[2]:f32 }");
  ASSERT_TRUE(parsed) << parsed.status().message();
  const Program whole = *parsed;
  ASSERT_TRUE(verify(whole));
  const auto broken = [&](auto change) {
    Program program = whole;
    change(program);
    return verify(program).message();
  };
  EXPECT_EQ(broken([](Program& p) { p.instrs[0].loop = kNone; }),
            "loop 1: copy [1] lies in its range but names another loop");
  EXPECT_EQ(broken([](Program& p) { p.instrs[1].loop = 0; }), "copy [2]: its loop does not hold it");
  EXPECT_EQ(broken([](Program& p) { p.instrs[1].group = 7; }), "copy [2]: its group does not hold it");
  EXPECT_EQ(broken([](Program& p) { p.loops[0].count = UINT32_MAX; }), "loop 1: ends at instruction 4294967295 of 2");
  EXPECT_EQ(broken([](Program& p) { p.loops[0].parent = 0; }), "loop 1: parent 1 does not stand before it");
  EXPECT_EQ(broken([](Program& p) { p.buffers[1].name = "x"; }), "two buffers are named 'x'");
  EXPECT_EQ(broken([](Program& p) { p.buffers[0].name = std::string("a\0b", 3); }),
            "buffer 'a' has a NUL byte in its name");
  EXPECT_EQ(broken([](Program& p) { p.instrs[0].kind = 99; }), "kind 99 [1]: the kind is unknown");
  EXPECT_EQ(broken([](Program& p) { p.instrs[0].fn = 1; }), "copy [1]: function 1 is unknown");
  EXPECT_EQ(broken([](Program& p) { p.instrs[0].inputs[0].buffer = 9; }), "copy [1]: input 0: buffer 9 of 2");
  EXPECT_EQ(broken([](Program& p) { p.instrs[0].inputs[0].elem = static_cast<Elem>(99); }),
            "copy [1]: input 0: no element type");
  EXPECT_EQ(broken([](Program& p) { p.instrs[0].outputs.clear(); }), "copy [1]: 0 outputs, expected 1");
  EXPECT_EQ(broken([](Program& p) { p.groups[0].first = 0, p.groups[0].count = 2; }),
            "group 1: copy [1] lies in its range but names another group");
  EXPECT_EQ(broken([](Program& p) { p.engines = 0; }), "0 engines are not within 1 .. 65535");
  EXPECT_EQ(broken([](Program& p) { p.spaces.clear(); }), "no memory space is declared");
}

} // namespace
} // namespace candela::test
