// What cpu says that Programs cost: more for more work, as much for the same work laid out in
// another way, and at once, however often a loop runs.
#include "backends/cpu/costs.hpp"

#include <gtest/gtest.h>

#include "core/compiler/program/image.h"
#include "core/compiler/program/text.h"

namespace candela::test {
namespace {

/// Nanoseconds of a Program of these lines, on one thread.
double priceOf(const std::string& lines, cpu::Tier tier = cpu::Tier::V3, int threads = 1) {
  Diagnostics diagnostics;
  const auto program =
      program::parse("program @priced {\n" + lines + "\n}\n", "priced", diagnostics);
  if (!program) ADD_FAILURE() << program.status().message();
  if (!program) return 0;
  const Bytes image = program::toImage(*program);
  return cpu::Costs(cpu::isaOf(tier), threads)
      .nanoseconds(reinterpret_cast<const cdl_image_t*>(image.data()));
}

std::string product(int64_t columns, const std::string& elems = "f32") {
  const bool isInt = elems == "i8";
  const int64_t bytes = isInt ? 1 : 4;
  return fmt::format("  space @host {{align 64}}\n"
                     "  buffer %a input @host {}\n  buffer %b input @host {}\n"
                     "  buffer %y output @host {}\n"
                     "  matmul @in %a[1,64,256]:{}, @in %b[1,256,{}]:{}, @out %y[1,64,{}]:{}",
                     64 * 256 * bytes, 256 * columns * bytes, 64 * columns * 4, elems, columns,
                     elems, columns, isInt ? "i32" : "f32");
}

TEST(Costs, GrowWithTheWork) {
  EXPECT_GT(priceOf(product(512)), 1.8 * priceOf(product(256)));
  EXPECT_LT(priceOf(product(512), cpu::Tier::V3, 2), 0.6 * priceOf(product(512)));
  EXPECT_LT(priceOf(product(512), cpu::Tier::AVX512), priceOf(product(512)));
  EXPECT_LT(priceOf(product(512, "i8"), cpu::Tier::VNNI),
            priceOf(product(512, "i8"), cpu::Tier::AVX512));
  EXPECT_LT(priceOf(product(512, "i8"), cpu::Tier::AVX_VNNI), priceOf(product(512, "i8")));
}

TEST(Costs, AreThoseOfTheWorkAndNotOfTheLayout) {
  const double rows = priceOf("  space @host {align 64}\n"
                              "  buffer %x input @host 100352\n  buffer %w input @host 36864\n"
                              "  buffer %y output @host 86528\n"
                              "  conv2d @in %x[1,32,28,28]:f32, @in %w[32,32,3,3]:f32, "
                              "@out %y[1,32,26,26]:f32");
  const double blocks = priceOf("  space @host {align 64}\n"
                                "  buffer %x input @host 100352\n  buffer %w input @host 36864\n"
                                "  buffer %y output @host 86528\n"
                                "  conv2d @in %x[1,4,28,28,8]:f32{n,c/8,h,w,c%8}, "
                                "@in %w[4,4,3,3,8,8]:f32{0/8,1/8,2,3,1%8,0%8}, "
                                "@out %y[1,4,26,26,8]:f32{n,c/8,h,w,c%8}");
  EXPECT_DOUBLE_EQ(rows, blocks);
}

TEST(Costs, CountCurvesAndLoops) {
  const auto unary = [](const std::string& function) {
    return "  space @host {align 64}\n"
           "  buffer %x input @host 65536\n  buffer %y output @host 65536\n"
           "  for 1000000000000 {\n    unary." +
           function + " @in %x[16384]:f32, @out %y[16384]:f32\n  }";
  };
  EXPECT_GT(priceOf(unary("exp")), priceOf(unary("neg")));
  EXPECT_GT(priceOf(unary("neg")), 1e14);
}

} // namespace
} // namespace candela::test
