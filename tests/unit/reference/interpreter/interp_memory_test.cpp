// Poison, roles, arenas and loops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/reference/interpreter/interp.h"
#include "tests/unit/compiler/program/program_text.h"

namespace candela::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<std::vector<Tensor>> run(const std::string& body, std::vector<Tensor> inputs = {},
                                bool inPlace = true) {
  const auto parsed = parseBody(body);
  if (!parsed) return parsed.status();
  return reference::interpret(*parsed, inputs, {inPlace});
}

Tensor ints(std::vector<int32_t> values) {
  const auto count = static_cast<int64_t>(values.size());
  return Tensor::of(Elem::i32_, {count}, values);
}

TEST(InterpMemory, ReadingWhatNothingWroteIsNamed) {
  const auto result =
      run("buffer %t temp @host 16\nbuffer %y output @host 16\nfill{value = 0x1} @out %t[3]:i32\n"
          "copy @in %t[4]:i32, @out %y[4]:i32 from \"Add_3\":add");
  EXPECT_EQ(result.status().message(),
            "copy [2] 'Add_3': reads element 3 of buffer 't', which nothing wrote");
}

TEST(InterpMemory, OutputsAreUndefinedAtTheStart) {
  EXPECT_EQ(
      run("buffer %y output @host 8\ncopy @in %y[1]:i32, @out %y[1]:i32 at 1").status().message(),
      "copy [1]: reads element 0 of buffer 'y', which nothing wrote");
  EXPECT_EQ(run("buffer %y output @host 8\nfill{value = 0x1} @out %y[1]:i32").status().message(),
            "after the last instruction: nothing wrote byte 4 of buffer 'y'");
}

TEST(InterpMemory, PartsOfAnElementCountAsUnwritten) {
  EXPECT_EQ(
      run("buffer %t temp @host 4\nbuffer %y output @host 4\nfill{value = 0x1} @out %t[3]:u8\n"
          "copy @in %t[1]:i32, @out %y[1]:i32")
          .status()
          .message(),
      "copy [2]: reads element 0 of buffer 't', which nothing wrote");
}

/// Two buffers that lie on each other: what the second one writes is not what is read of the first.
/// On their own they are apart.
TEST(InterpMemory, AnOverlapInTheArenaShows) {
  const std::string body =
      "buffer %a temp @host 8 at 0 \nbuffer %b temp @host 8 at 0\nbuffer %y output @host 8\n"
      "fill{value = 0x1} @out %a[2]:i32\nfill{value = 0x7} @out %b[2]:i32\ncopy @in %a[2]:i32, "
      "@out %y[2]:i32";
  const auto overlapping = run(body), apart = run(body, {}, false);
  EXPECT_EQ(overlapping.status().message(),
            "copy [3]: reads element 0 of buffer 'a', in whose place buffer 'b' was written");
  ASSERT_TRUE(apart);
  EXPECT_THAT(apart->front().toInts(), ElementsAre(1, 1));
}

TEST(InterpMemory, SpacesHaveArenasOfTheirOwn) {
  const auto result =
      run("space @sram {align 16}\nbuffer %a temp @host 8 at 0\nbuffer %b temp @sram 8 at 0\n"
          "buffer %y output @host 16\nfill{value = 0x1} @out %a[2]:i32\nfill{value = 0x7} @out "
          "%b[2]:i32\n"
          "copy @in %a[2]:i32, @out %y[2]:i32\ncopy @in %b[2]:i32, @out %y[2]:i32 at 2");
  ASSERT_TRUE(result) << result.status().message();
  EXPECT_THAT(result->front().toInts(), ElementsAre(1, 1, 7, 7));
}

TEST(InterpMemory, OperandsAndResultsMayNotCross) {
  const std::string buffers =
      "constant @c : i32[4] = [1, 2, 3, 4]\nbuffer %c constant @host 16 = @c\n"
      "buffer %y output @host 16\ncopy @in %c[4]:i32, @out %y[4]:i32\n";
  // Where one look at the Program says so, it is refused before it runs.
  EXPECT_THAT(run(buffers + "copy @in %y[3]:i32, @out %y[3]:i32 at 1").status().message(),
              HasSubstr("copy [2]: input 0 (%y): its element 1 is overwritten through %y"));
  EXPECT_THAT(run(buffers + "binary.add @in %y[3]:i32 at 1, @in %c[3]:i32, @out %y[3]:i32")
                  .status()
                  .message(),
              HasSubstr("binary [2]: input 0 (%y): its element 1 is overwritten through %y"));
  EXPECT_THAT(run(buffers + "reduce.sum @in %y[1,2,2]:i32, @out %y[1,2]:i32").status().message(),
              HasSubstr("reduce [2]: input 0 (%y): its element 0 is overwritten through %y"));
  // In a loop one iteration may cross where another does not.
  EXPECT_EQ(run(buffers +
                "for 2 {\nbinary.add @in %y[2]:i32 at 1, @in %c[2]:i32, @out %y[2]:i32 + 1*i0\n}")
                .status()
                .message(),
            "binary [2]: element 1 of buffer 'y' is read and overwritten through buffer 'y'");
  // In place, and interleaved without touching, is fine.
  const auto inPlace =
      run(buffers + "binary.add @in %y[4]:i32, @in %c[4]:i32, @out %y[4]:i32\n"
                    "copy @in %y[2]:i32 strides[2], @out %y[2]:i32 at 1 strides[2]");
  ASSERT_TRUE(inPlace) << inPlace.status().message();
  EXPECT_THAT(inPlace->front().toInts(), ElementsAre(2, 2, 6, 6));
}

TEST(InterpMemory, StateAndInoutComeBack) {
  const auto result =
      run("buffer %x input @host 4\nbuffer %s state @host 8\nbuffer %io inout @host 4\nbuffer %y "
          "output @host 4\n"
          "binary.add @in %s[2]:i32, @in %x[2]:i32 strides[0], @out %s[2]:i32\n"
          "copy @in %io[1]:i32, @out %y[1]:i32\ncopy @in %x[1]:i32, @out %io[1]:i32",
          {ints({5}), ints({0, 10}), ints({77})});
  ASSERT_TRUE(result) << result.status().message();
  ASSERT_EQ(result->size(), 3u);
  EXPECT_THAT((*result)[0].toInts(), ElementsAre(5, 15));
  EXPECT_THAT((*result)[1].toInts(), ElementsAre(5));
  EXPECT_THAT((*result)[2].toInts(), ElementsAre(77));
}

TEST(InterpMemory, InputsAreChecked) {
  const std::string body =
      "buffer %x input @host 8\nbuffer %y output @host 8\ncopy @in %x[2]:i32, @out %y[2]:i32";
  EXPECT_EQ(run(body).status().message(), "0 inputs given, none for 'x'");
  EXPECT_EQ(run(body, {ints({1})}).status().message(),
            "input 'x' of i32[1] has 4 bytes, its buffer 8");
  EXPECT_EQ(run(body, {ints({1, 2}), ints({1, 2})}).status().message(),
            "2 inputs given, expected 1");
}

TEST(InterpLoops, RunOverTheirValues) {
  // The table of 3 x 4 products, row by row and column by column.
  const auto result = run("constant @c : i32[4] = [1, 2, 3, 4]\nbuffer %c constant @host 16 = "
                          "@c\nbuffer %y output @host 48\n"
                          "for 3 { for 4 { binary.mul @in %c[1]:i32 + 1*i0, @in %c[1]:i32 + 1*i1, "
                          "@out %y[1]:i32 + 4*i0 + 1*i1 } }");
  ASSERT_TRUE(result) << result.status().message();
  EXPECT_THAT(result->front().toInts(), ElementsAre(1, 2, 3, 4, 2, 4, 6, 8, 3, 6, 9, 12));
}

TEST(InterpLoops, CarryValues) {
  // Fibonacci, in place over the state: s = [a, b] becomes [b, a + b].
  const auto result =
      run("buffer %s state @host 8\nbuffer %t temp @host 4\n"
          "for 10 {\n binary.add @in %s[1]:i32, @in %s[1]:i32 at 1, @out %t[1]:i32\n"
          " copy @in %s[1]:i32 at 1, @out %s[1]:i32\n copy @in %t[1]:i32, @out %s[1]:i32 at 1\n}",
          {ints({0, 1})});
  ASSERT_TRUE(result) << result.status().message();
  EXPECT_THAT(result->front().toInts(), ElementsAre(55, 89));
}

TEST(InterpLoops, InstructionsAroundAndBetween) {
  const auto result = run(
      "constant @c : i32[2] = [1, 10]\nbuffer %c constant @host 8 = @c\nbuffer %y output @host 4\n"
      "fill{value = 0x0} @out %y[1]:i32\n"
      "for 2 {\n binary.add @in %y[1]:i32, @in %c[1]:i32, @out %y[1]:i32\n"
      " for 3 { binary.add @in %y[1]:i32, @in %c[1]:i32 at 1, @out %y[1]:i32 }\n"
      " binary.add @in %y[1]:i32, @in %c[1]:i32, @out %y[1]:i32\n}\n"
      "binary.add @in %y[1]:i32, @in %c[1]:i32 at 1, @out %y[1]:i32");
  ASSERT_TRUE(result) << result.status().message();
  EXPECT_THAT(result->front().toInts(), ElementsAre(2 * (1 + 30 + 1) + 10));
}

TEST(InterpLoops, EndlessProgramsAreRefused) {
  EXPECT_EQ(run("buffer %y output @host 4\nfor 1099511627776 { for 1099511627776 { fill{value = "
                "0x0} @out %y[1]:i32 } }")
                .status()
                .message(),
            "the program runs more than 67108864 instructions");
}

/// With every wait checked.
Status order(const std::string& body, std::vector<Tensor> inputs = {}) {
  const auto parsed = parseBody(body);
  EXPECT_TRUE(parsed) << parsed.status().message();
  return parsed ? reference::interpret(*parsed, inputs, {true, true}).status() : parsed.status();
}

constexpr const char* kTwoTiles =
    "buffer %x input @host 8\nbuffer %t temp @host 4\nbuffer %y output @host 8\n"
    "copy @in %x[1]:i32, @out %t[1]:i32\n"
    "copy @in %t[1]:i32, @out %y[1]:i32 waits(1) from \"Conv_0\":store\n"
    "copy @in %x[1]:i32 at 1, @out %t[1]:i32 {}\n"
    "copy @in %t[1]:i32, @out %y[1]:i32 at 1 {}";

TEST(InterpOrder, WaitsLeadFromEachAccessToTheNext) {
  const auto status = [](const char* load, const char* store) {
    return order(fmt::format(fmt::runtime(kTwoTiles), load, store), {ints({3, 4})}).message();
  };
  EXPECT_EQ(status("waits(2)", "waits(3)"), ""); // by way of 2
  EXPECT_EQ(status("waits(1)", "waits(3)"), "copy [3]: writes element 0 of buffer 't' in no order "
                                            "with copy [2] 'Conv_0', which no wait leads to");
  EXPECT_EQ(
      status("waits(2)", "waits(2)"),
      "copy [4]: reads element 0 of buffer 't' in no order with copy [3], which no wait leads to");
}

TEST(InterpOrder, ReadersNeedNone) {
  EXPECT_TRUE(order(
      "buffer %x input @host 4\nbuffer %y output @host 8\ncopy @in %x[1]:i32, @out %y[1]:i32\n"
      "copy @in %x[1]:i32, @out %y[1]:i32 at 1",
      {ints({3})}));
}

TEST(InterpOrder, LoopsAreRefused) {
  EXPECT_EQ(order("buffer %y output @host 4\nfor 2 { fill{value = 0x1} @out %y[1]:i32 }").message(),
            "waits are checked without loops, but the program has 1");
}

TEST(InterpLimits, WhatItDoesNotRunIsSaid) {
  EXPECT_EQ(run("buffer %y output @host 4\ncustom @out %y[1]:i32").status().message(),
            "custom [1]: the interpreter does not know the ops of plugins");
  EXPECT_EQ(run("buffer %t temp @host 4611686018427387904\n").status().message(),
            "the program needs more than the interpreter's 8589934592 bytes");
}

} // namespace
} // namespace candela::test
