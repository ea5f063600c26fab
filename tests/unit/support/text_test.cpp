#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/support/float_bits.h"
#include "core/support/text/expr.h"
#include "core/support/text/literal.h"
#include "core/support/text/pairs.h"
#include "core/support/text/shown.h"

namespace candela::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(FloatBits, KnowsEveryFormat) {
  EXPECT_EQ(toReal(Elem::f16_, 0x3c00), 1.0);
  EXPECT_EQ(toReal(Elem::f16_, 0x0001), 0x1p-24);
  EXPECT_EQ(toReal(Elem::f16_, 0xfbff), -65504.0);
  EXPECT_EQ(toReal(Elem::bf16_, 0x4049), 3.140625);
  EXPECT_EQ(toReal(Elem::f8e4m3_, 0x7e), 448.0);
  EXPECT_TRUE(std::isnan(toReal(Elem::f8e4m3_, 0x7f)));
  EXPECT_EQ(toReal(Elem::f8e4m3_, 0x01), 0x1p-9);
  EXPECT_EQ(toReal(Elem::f8e5m2_, 0x7b), 57344.0);
  EXPECT_EQ(toReal(Elem::f8e5m2_, 0xfc), -INFINITY);
  EXPECT_EQ(toReal(Elem::f8e4m3fnuz_, 0x7f), 240.0);
  EXPECT_EQ(toReal(Elem::f8e5m2fnuz_, 0xff), -57344.0);
  EXPECT_TRUE(std::isnan(toReal(Elem::f8e4m3fnuz_, 0x80)));
  EXPECT_EQ(toReal(Elem::f8e8m0_, 0), 0x1p-127);
  EXPECT_EQ(toReal(Elem::f8e8m0_, 254), 0x1p127);
  EXPECT_TRUE(std::isnan(toReal(Elem::f8e8m0_, 255)));
  EXPECT_EQ(toReal(Elem::f6e2m3_, 0x1f), 7.5);
  EXPECT_EQ(toReal(Elem::f6e3m2_, 0x3f), -28.0);
  EXPECT_EQ(toReal(Elem::f4e2m1_, 0x7), 6.0);
  EXPECT_EQ(toReal(Elem::f4e2m1_, 0x9), -0.5);
}

TEST(FloatBits, RoundsToNearestEven) {
  EXPECT_EQ(fromReal(Elem::f16_, 1 + 0x1p-11), 0x3c00u); // a tie goes to the even neighbour
  EXPECT_EQ(fromReal(Elem::f16_, 1 + 3 * 0x1p-11), 0x3c02u);
  EXPECT_EQ(fromReal(Elem::f16_, 1 + 0x1p-11 + 0x1p-40), 0x3c01u); // above the tie
  EXPECT_EQ(fromReal(Elem::f16_, 65519.99), 0x7bffu);
  EXPECT_EQ(fromReal(Elem::f16_, 65520.0), 0x7c00u);
  EXPECT_EQ(fromReal(Elem::f16_, 0x1p-25), 0x0000u);
  EXPECT_EQ(fromReal(Elem::f16_, 0x1.8p-24), 0x0002u);
  EXPECT_EQ(fromReal(Elem::f16_, -0.0), 0x8000u);
  EXPECT_EQ(fromReal(Elem::f16_, 0x1.ffep-15), 0x0400u); // the largest subnormal's upper tie
  EXPECT_EQ(fromReal(Elem::f16_, 1e-300), 0u);
  EXPECT_EQ(fromReal(Elem::f16_, 1e300), 0x7c00u);
  EXPECT_EQ(fromReal(Elem::bf16_, 3.4e38), 0x7f80u);
  EXPECT_EQ(fromReal(Elem::f8e4m3_, 464.0), 0x7eu);
  EXPECT_EQ(fromReal(Elem::f8e4m3_, 465.0), 0x7fu);
  EXPECT_EQ(fromReal(Elem::f8e4m3_, -INFINITY), 0xffu);
  EXPECT_EQ(fromReal(Elem::f8e5m2_, 61440.0), 0x7cu);
  EXPECT_EQ(fromReal(Elem::f8e4m3fnuz_, 248.0), 0x80u);
  EXPECT_EQ(fromReal(Elem::f8e5m2fnuz_, -1e-9), 0u); // no -0
  EXPECT_EQ(fromReal(Elem::f8e8m0_, 0x1.7ffp0), 127u);
  EXPECT_EQ(fromReal(Elem::f8e8m0_, 0x1.8p0), 128u);
  EXPECT_EQ(fromReal(Elem::f8e8m0_, 0.0), 255u);
  EXPECT_EQ(fromReal(Elem::f8e8m0_, 0x1.8p127), 255u);
  EXPECT_EQ(fromReal(Elem::f4e2m1_, -INFINITY), 0xfu);
  EXPECT_EQ(fromReal(Elem::f4e2m1_, 2.5), 0x4u); // 2, whose mantissa is even
  EXPECT_EQ(fromReal(Elem::f4e2m1_, NAN), 0x8u);
  EXPECT_EQ(fromReal(Elem::f6e3m2_, 1e9), 0x1fu);
  EXPECT_EQ(fromReal(Elem::f32_, 1e300), 0x7f800000u);
}

TEST(FloatBits, EverySmallPatternComesBack) {
  for (const Elem elem : {Elem::f16_, Elem::bf16_, Elem::f8e4m3_, Elem::f8e5m2_, Elem::f8e4m3fnuz_,
                          Elem::f8e5m2fnuz_, Elem::f8e8m0_})
    for (uint64_t bits = 0; bits < uint64_t(1) << elemBits(elem); ++bits)
      ASSERT_EQ(fromReal(elem, toReal(elem, bits)), bits) << elemName(elem);
  for (const uint64_t nan : {0x7fc00001u, 0x7f800001u, 0xffffffffu, 0x7f900000u})
    EXPECT_EQ(fromReal(Elem::f32_, toReal(Elem::f32_, nan)), nan);
}

TEST(Literal, EverySmallPatternReadsBack) {
  for (const Elem elem : {Elem::f16_, Elem::bf16_, Elem::f8e4m3_, Elem::f8e5m2_, Elem::f8e4m3fnuz_,
                          Elem::f8e8m0_, Elem::f4e2m1_, Elem::i8_, Elem::u8_, Elem::i4_, Elem::u4_,
                          Elem::i2_, Elem::u2_, Elem::bool_, Elem::i16_, Elem::u16_})
    for (uint64_t bits = 0; bits < uint64_t(1) << elemBits(elem); ++bits) {
      const std::string text = elementText(elem, bits);
      const auto read = parseElement(elem, text);
      ASSERT_TRUE(read) << read.status().message();
      ASSERT_EQ(*read, bits) << elemName(elem) << " " << text;
    }
}

TEST(Literal, RandomPatternsReadBack) {
  for (const Elem elem : {Elem::f32_, Elem::f64_, Elem::i32_, Elem::u32_, Elem::i64_, Elem::u64_})
    for (uint64_t i = 0; i < 20000; ++i) {
      const uint64_t bits = splitmix64(i) >> (64 - elemBits(elem));
      const std::string text = elementText(elem, bits);
      ASSERT_EQ(parseElement(elem, text).value(), bits) << elemName(elem) << " " << text;
    }
}

TEST(Literal, IsShort) {
  EXPECT_EQ(elementText(Elem::f32_, 0x3dcccccd), "0.1");
  EXPECT_EQ(elementText(Elem::f16_, 0x2e66), "0.1");
  EXPECT_EQ(elementText(Elem::f32_, 0x4b800000), "16777216.0");
  EXPECT_EQ(elementText(Elem::f32_, 0x7fc00000), "nan");
  EXPECT_EQ(elementText(Elem::f32_, 0x7fc00001), "0x7fc00001");
  EXPECT_EQ(realText(1.0), "1.0");
  EXPECT_EQ(realText(-INFINITY), "-inf");
}

TEST(Literal, RefusesWhatDoesNotFit) {
  EXPECT_EQ(parseElement(Elem::i8_, "128").status().message(), "128 does not fit i8");
  EXPECT_EQ(parseElement(Elem::i8_, "0x100").status().message(), "0x100 does not fit i8");
  EXPECT_EQ(parseElement(Elem::u64_, "18446744073709551616").status().message(),
            "18446744073709551616 does not fit u64");
  EXPECT_EQ(parseElement(Elem::f16_, "65520.0").status().message(), "65520.0 does not fit f16");
  EXPECT_EQ(parseElement(Elem::bool_, "2").status().message(), "2 does not fit bool");
  EXPECT_EQ(parseElement(Elem::f32_, "one").status().message(), "'one' is no number");
}

TEST(Lexer, CutsTokens) {
  Diagnostics diagnostics;
  TokenStream in("a.b %x %\"a b\" @f -> 5 -3 -1.5e-3 0x1F c%16 // rest\n\"q\\x41\\n\"", "f",
                 diagnostics);
  std::vector<std::string> tokens;
  while (!in.at(TokenKind::end)) tokens.push_back(in.take().text);
  EXPECT_THAT(tokens, ElementsAre("a.b", "x", "a b", "f", "->", "5", "-3", "-1.5e-3", "0x1F", "c",
                                  "%", "16", "qA\n"));
  EXPECT_TRUE(diagnostics.empty());
}

TEST(Lexer, FailureEndsTheStream) {
  Diagnostics diagnostics;
  TokenStream in("a\n  ?b", "f.cdl", diagnostics);
  EXPECT_TRUE(in.accept("a"));
  EXPECT_THROW(in.expect("b"), Malformed);
  EXPECT_TRUE(in.at(TokenKind::end));
  EXPECT_THROW(in.expect("c"), Malformed);
  ASSERT_EQ(diagnostics.list().size(), 1u);
  EXPECT_EQ(diagnostics.list()[0].text(), "f.cdl:2:3: error: expected 'b' but found '?'");
}

TEST(Lexer, QuotingReadsBack) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  const std::string text = quoteText(all);
  Diagnostics diagnostics;
  TokenStream in(text, "f", diagnostics);
  EXPECT_EQ(in.take().text, all);
}

std::string roundTrip(const std::string& text) {
  const auto steps = parseExpr(text);
  if (!steps) return steps.status().message();
  const std::string printed = exprText(*steps);
  EXPECT_EQ(parseExpr(printed).value(), *steps);
  return printed;
}

TEST(Expr, FlattensInOrderOfComputation) {
  const ExprSteps steps = parseExpr("max(add(acc, v12), 0.0)").value();
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(exprFnName(steps[0]), "add");
  EXPECT_EQ(steps[0].args[0].source, ExprArg::Source::acc);
  EXPECT_EQ(steps[0].args[1].index, 12);
  EXPECT_EQ(steps[1].args[0].source, ExprArg::Source::step);
  EXPECT_EQ(steps[1].args[1].literal, "0.0");
}

TEST(Expr, PrintsTreesNestedAndSharedStepsNamed) {
  EXPECT_EQ(roundTrip("max( add(v0,v1) , 0.0 )"), "max(add(v0, v1), 0.0)");
  EXPECT_EQ(roundTrip("select(lt(v0, 0.0), neg(v0), exp(mul(v0, -1e-3)))"),
            "select(lt(v0, 0.0), neg(v0), exp(mul(v0, -1e-3)))");
  EXPECT_EQ(roundTrip("e = exp(v0); div(e, add(e, 1.0))"),
            "t0 = exp(v0); t1 = add(t0, 1.0); div(t0, t1)");
  EXPECT_EQ(roundTrip("convert_i8_rne_saturate(convert_f32(v0))"),
            "convert_i8_rne_saturate(convert_f32(v0))");
  EXPECT_EQ(roundTrip("a = exp(v0); b = log(v1); sub(b, a)"),
            "t0 = exp(v0); t1 = log(v1); sub(t1, t0)");
}

TEST(Expr, RefusesMalformedText) {
  EXPECT_EQ(roundTrip("v0"), "unknown function 'v0' at character 1");
  EXPECT_EQ(roundTrip("add(v0)"), "add takes 2 operands, not 1 at character 1");
  EXPECT_EQ(roundTrip("add(v0, v1"), "expected ')' but found end of file at character 11");
  EXPECT_EQ(roundTrip("exp(w0)"), "unknown operand 'w0' at character 5");
  EXPECT_EQ(roundTrip("exp(v0) v1"), "unexpected 'v1' after the expression at character 9");
  EXPECT_EQ(roundTrip("acc = exp(v0); exp(acc)"), "'acc' is already something else at character 1");
  EXPECT_EQ(roundTrip("convert_f33(v0)"), "unknown function 'convert_f33' at character 1");
  std::string deep, wide = "v0";
  for (int i = 0; i < 100000; ++i) deep += "exp(";
  EXPECT_THAT(roundTrip(deep), HasSubstr("more than 32 steps"));
  for (int i = 0; i < 33; ++i) wide = "add(" + wide + ", v0)";
  EXPECT_THAT(roundTrip(wide), HasSubstr("more than 32 steps"));
}

std::string typesOf(const std::string& text, std::vector<Elem> views, Elem acc = Elem::none) {
  const auto types = typeExpr(parseExpr(text).value(), views, acc);
  if (!types) return types.status().message();
  std::string out;
  for (const Elem elem : types->steps)
    out += (out.empty() ? "" : " ") + std::string(elemName(elem));
  return out;
}

TEST(Expr, TypesFollowTheOperands) {
  const Elem f = Elem::f32_, i = Elem::i32_, b = Elem::bool_;
  EXPECT_EQ(typesOf("select(lt(v0, 0.5), v0, 1.0)", {f}), "bool f32");
  EXPECT_EQ(typesOf("convert_i8_rne(add(acc, v0))", {i}, i), "i32 i8");
  EXPECT_EQ(typesOf("add(v0, v1)", {f, i}), "add of f32 and i32");
  EXPECT_EQ(typesOf("add(1.0, 2.0)", {}), "add has only literals");
  EXPECT_EQ(typesOf("add(v0, 1.5)", {i}), "'1.5' is no number of type i32");
  EXPECT_EQ(typesOf("exp(v0)", {i}), "exp has no meaning for i32");
  EXPECT_EQ(typesOf("select(v0, v0, v0)", {f}), "select's condition is f32, not bool");
  EXPECT_EQ(typesOf("xor(v0, true)", {b}), "bool");
  EXPECT_EQ(typesOf("exp(acc)", {f}), "no accumulator here");
  EXPECT_EQ(typesOf("exp(v1)", {f}), "v1 but only 1 operands");
}

TEST(Shown, NothingHiddenIsLeft) {
  EXPECT_EQ(shownLine("a\x1b[31mb\r\n\t\x7f"), "a\\x1b[31mb\\x0d\\n\\t\\x7f");
  EXPECT_EQ(shownText("a\tb\n\x07"), "a\tb\n\\x07");
  EXPECT_EQ(shownLine("\u202e\u2066\u200f\u0085\u2028\U000e0041"),
            "\\u202e\\u2066\\u200f\\u0085\\u2028\\U000e0041");
  EXPECT_EQ(shownLine("\x9b\xff\xc0\x80\xed\xa0\x80 caf\xc3"),
            "\\x9b\\xff\\xc0\\x80\\xed\\xa0\\x80 caf\\xc3");
  EXPECT_EQ(shownLine(std::string_view("a\0b", 3)), "a\\x00b");
  for (const char* plain : {"", "café 日本 🙂", "a\\b \"c\" <d>"})
    EXPECT_EQ(shownLine(plain), plain);
  EXPECT_EQ(shownJson("{\n \"a\": \"\u202e\x7f\U000e0041é\"}"),
            "{\n \"a\": \"\\u202e\\u007f\\udb40\\udc41é\"}");
}

TEST(Shown, TextFormReadsBack) {
  const std::string name = "a\x1b\u202e\x9b\"\\\n\té\U000e0041";
  Diagnostics diagnostics;
  const std::string quoted = quoteText(name);
  EXPECT_EQ(shownLine(quoted), quoted);
  EXPECT_EQ(TokenStream(quoted, "t", diagnostics).take().text, name);
}

TEST(Shown, CellsAreNoFormulas) {
  for (const char* number : {"-5", "+5", "-2.5e3", "0", "1e-7", "-.5"})
    EXPECT_EQ(csvCell(number), number);
  EXPECT_EQ(csvCell("=1+1"), "'=1+1");
  EXPECT_EQ(csvCell("+a"), "'+a");
  EXPECT_EQ(csvCell("-1+cmd|x"), "'-1+cmd|x");
  EXPECT_EQ(csvCell("-inf(1)"), "'-inf(1)");
  EXPECT_EQ(csvCell("@SUM(A1,\"b\")"), "\"'@SUM(A1,\"\"b\"\")\"");
  EXPECT_EQ(csvCell("\t=1"), "'\\t=1");
  EXPECT_EQ(csvCell("\r=1"), "'\\x0d=1");
  EXPECT_EQ(csvCell("\uff1d1"), "'\uff1d1");
  EXPECT_EQ(csvCell("a,b"), "\"a,b\"");
  EXPECT_EQ(csvCell(""), "");
  EXPECT_EQ(plainCell("=a"), "'=a");
}

TEST(Pairs, AreNamesOrAllThatDifferInOneText) {
  const std::vector<std::string> inputs{"ids", "a=b", "past_k_0", "past_k_1", "past_v_0", "x*"},
      outputs{"next", "c", "present_k_0", "present_v_0", "y", "next_k_1"};
  const auto pairs = [&](const char* text) { return pairsOf(text, inputs, outputs); };
  EXPECT_THAT(pairs("ids=next"), ElementsAre(NamePair("ids", "next")));
  EXPECT_THAT(pairs("a=b=c"), ElementsAre(NamePair("a=b", "c")));
  EXPECT_THAT(pairs("past_*=present_*"), ElementsAre(NamePair("past_k_0", "present_k_0"),
                                                     NamePair("past_v_0", "present_v_0")));
  EXPECT_THAT(pairs("x*=y"), ElementsAre(NamePair("x*", "y")));
  for (const char* none : {"", "=", "ids", "ids=", "ids=c*", "past_*=c", "past_**=present_**",
                           "q*=present_*", "past_k_0past_k_0*=present_*"})
    EXPECT_TRUE(pairs(none).empty()) << none;
}

} // namespace
} // namespace candela::text
