#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/compiler/program/image.h"
#include "tests/unit/compiler/program/program_text.h"

namespace candela::test {
namespace {

/// Everything that has a spelling, as the printer spells it.
constexpr const char* kCanonical = R"(program @"my net" engines(2) {
  space @host {host_mapped, align 64}
  space @sram {local, capacity 65536, align 16, banks 4}
  constant @w : f32[3] = [1.0, -0.5, nan]
  constant @zeros : i8[1000] = splat(0)
  buffer %x input @host 4096
  buffer %w constant @host 12 = @w
  buffer %z constant @host 1000 = @zeros
  buffer %"/conv/out" temp @host 4096 align 128 at 256 halo(f32, [0, 1], [0, 1], -inf)
  buffer %tile temp @sram 512
  buffer %cache state @host 4096
  buffer %y output @host 4096
  [1] fill{value = 0x3f800000} @out %y[2,2]:f32
  [2] conv2d{strides = [1, 1], pads = [0, 0, 0, 0]} @in %x[1,1,4,4,4]:f32{n,c/4,h,w,c%4}, @in %w[1,3,1,1]:f32, @out %"/conv/out"[1,1,4,4,4]:f32{n,c/4,h,w,c%4 pad zero} engine 1 waits(1) from "Conv_0":conv, "odd \"name\"":"an op"
  [3] matmul @in %x[1,2,4]:f32 at 8 strides[0, 16, 1], @in %x[1,4,2]:f32, @in %y[1,2,2]:f32, @out %cache[1,2,2]:f32 expr{max(add(acc, v2), 0.0)}
  [4] elementwise @in %x[4]:f32, @out %y[4]:f32 expr{t0 = exp(v0); t1 = add(t0, 1.0); div(t0, t1)}
  [5] matmul @in %z[1,2,4]:i8, @in %z[1,4,2]:i8, @out %y[1,2,2]:i8 expr(acc i32){convert_i8_rne_saturate(mul(convert_f32(acc), 0.25))}
  for 4 {
    [6] copy @in %x[8]:f32 + 8*i0, @out %tile[8]:f32
    for 2 {
      [7] unary.neg @in %tile[4]:f32 + 4*i1, @out %y[4]:f32 + 8*i0 + 4*i1
    }
    group dim 1 bands 1 {
      [8] scatter.add @in %z[2]:i32, @in %x[1,2,1]:f32, @inout %y[1,3,1]:f32
      [9] norm.layer{epsilon = 1e-05} @in %x[2,2]:f32, @out %tile[2,2]:f32 waits(8)
    }
  }
  [10] custom.300{attr77 = -5, attr78 = 2.5, scale = float(0x7ff4000000000000)} @in %z[5,5]:i8{0,1 opaque "tiles" rank 2}, @out %y[]:f32
}
)";

TEST(Text, CanonicalTextComesBack) {
  Diagnostics diagnostics;
  const auto parsed = program::parse(kCanonical, "t.cdl", diagnostics);
  ASSERT_TRUE(parsed) << parsed.status().message();
  const auto printed = program::print(*parsed);
  ASSERT_TRUE(printed) << printed.status().message();
  EXPECT_EQ(*printed, kCanonical);
}

TEST(Text, LargeConstantsLieBesideTheFile) {
  const auto directory =
      std::filesystem::path(::testing::TempDir()) / fmt::format("candela_text_{}", getpid());
  std::filesystem::create_directories(directory);
  const auto parsed =
      parseBody("constant @w : i32[100] = iota(-3, 7)\nbuffer %w constant @host 400 = @w");
  ASSERT_TRUE(parsed) << parsed.status().message();
  EXPECT_EQ(parsed->constants[0].payload.form(), Payload::Form::data);
  program::PrintOptions options;
  options.resourceDirectory = directory.string();
  const auto printed = program::print(*parsed, options);
  ASSERT_TRUE(printed) << printed.status().message();
  EXPECT_NE(printed->find("constant @w : i32[100] = resource(\"w\", sha256 \""), std::string::npos)
      << *printed;
  Diagnostics diagnostics;
  const auto again = program::parse(*printed, (directory / "t.cdl").string(), diagnostics);
  ASSERT_TRUE(again) << again.status().message();
  EXPECT_EQ(again->constants[0].payload, parsed->constants[0].payload);
  std::ofstream(directory / "w.bin", std::ios::binary) << std::string(400, 'x');
  EXPECT_FALSE(program::parse(*printed, (directory / "t.cdl").string(), diagnostics));
  std::filesystem::remove_all(directory);
}

TEST(Text, ErrorsSayWhere) {
  const auto place = [](const std::string& text) {
    Diagnostics diagnostics;
    EXPECT_FALSE(program::parse(text, "t.cdl", diagnostics));
    EXPECT_EQ(diagnostics.list().size(), 1u);
    return diagnostics.list().front().text();
  };
  EXPECT_EQ(place(""), "t.cdl:1:1: error: expected 'program' but found end of file");
  EXPECT_EQ(place("program @p {"),
            "t.cdl:1:13: error: expected an instruction but found end of file");
  EXPECT_EQ(place("program @p { space @h {} } x"),
            "t.cdl:1:28: error: unexpected 'x' after the program");
  EXPECT_EQ(place("program @p {\n  frobnicate @out %x[1]:f32\n}"),
            "t.cdl:2:3: error: unknown instruction 'frobnicate'");
  EXPECT_EQ(place("program @p {\n  binary @out %x[1]:f32\n}"),
            "t.cdl:2:3: error: binary needs a function: binary.name");
  EXPECT_EQ(place("program @p {\n  binary.plus @out %x[1]:f32\n}"),
            "t.cdl:2:3: error: unknown function 'plus' of binary");
  EXPECT_EQ(place("program @p {\n  space @h {}\n  buffer %x input @h 8\n  copy @in %x[2]:f32, @out "
                  "%y[2]:f32\n}"),
            "t.cdl:4:28: error: '%y' is not declared");
  // A mistake of meaning stands at the instruction or the buffer.
  EXPECT_EQ(
      place("program @p {\n  space @h {}\n  buffer %x temp @h 8\n  buffer %y temp @h 8\n"
            "  [1] copy @in %x[2]:f32, @out %y[3]:f32\n}"),
      "t.cdl:5:7: error: copy [1]: output 0 (%y): element 2 lies beyond its buffer's elements, 2");
  EXPECT_EQ(place("program @p {\n  space @h {}\n  buffer %x temp @h 8 align 3\n}"),
            "t.cdl:3:3: error: buffer 'x': alignment 3 is not a power of two");
}

TEST(Text, EveryMistakeHasItsMessage) {
  const std::string two = "buffer %x temp @host 64\nbuffer %y temp @host 64\n";
  EXPECT_EQ(errorOf(two + "[2] copy @in %x[2]:f32, @out %y[2]:f32"), "instruction 1 is numbered 2");
  EXPECT_EQ(errorOf(two + "copy @out %y[2]:f32, @in %x[2]:f32"), "an @in view behind a result");
  EXPECT_EQ(errorOf(two + "custom @out %y[2]:f32, @inout %x[2]:f32"),
            "results are all @out or all @inout");
  EXPECT_EQ(errorOf(two + "copy @at %x[2]:f32"), "expected @in, @out or @inout but found '@at'");
  EXPECT_EQ(errorOf(two + "copy @in %x[2]:f33"), "unknown element type 'f33'");
  EXPECT_EQ(errorOf(two + "copy @in %x[2]:f32{n,q}"),
            "expected a dim (n, c, h, w or below 8) but found 'q'");
  EXPECT_EQ(errorOf(two + "copy @in %x[2]:f32{n,c/8,h,w,c%16}"),
            "'c/8' but the factors inside of it give 16");
  EXPECT_EQ(errorOf(two + "copy @in %x[2]:f32 + 1*i0 + 2*i0"), "a second stride of i0");
  EXPECT_EQ(errorOf(two + "copy{frob = 1} @in %x[2]:f32"), "unknown attribute 'frob'");
  EXPECT_EQ(errorOf(two + "copy{axis = x} @in %x[2]:f32"), "'x' is no number");
  EXPECT_EQ(errorOf(two + "copy @in %x[2]:f32, @out %y[2]:f32 waits(0)"),
            "instructions count from 1");
  EXPECT_EQ(errorOf(two + "copy @in %x[2]:f32, @out %y[2]:f32 engine 70000"),
            "engine 70000 is not within 0 .. 65535");
  EXPECT_EQ(errorOf("for 3 { }"), "a region without instructions");
  EXPECT_EQ(errorOf("for 1 { for 1 { for 1 { } } }"), "loops are nested more than 2 deep");
  EXPECT_EQ(errorOf("group dim 0 bands 1 { group dim 0 bands 1 { } }"),
            "a group inside of a group");
  EXPECT_EQ(errorOf("space @host {}"), "'@host' is declared twice");
  EXPECT_EQ(errorOf("buffer %x temp @host 8\nbuffer %x temp @host 8"), "'%x' is declared twice");
  EXPECT_EQ(errorOf("buffer %x scratch @host 8"), "expected a role but found 'scratch'");
  EXPECT_EQ(errorOf("buffer %x temp @sram 8"), "'@sram' is not declared");
  EXPECT_EQ(errorOf("buffer %x temp @host -8"),
            "size in bytes -8 is not within 0 .. 9223372036854775807");
  EXPECT_EQ(errorOf("constant @c : f32[2] = [1.0]"), "1 values for 2 elements");
  EXPECT_EQ(errorOf("constant @c : u8[1] = [300]"), "300 does not fit u8");
  EXPECT_EQ(errorOf("constant @c : i32[100000000] = iota(0, 1)"),
            "100000000 elements exceed 67108864");
}

TEST(Text, PrintingAnInvalidProgramFails) {
  program::Program program;
  program::Instr instr;
  instr.kind = CDL_KIND_COPY;
  program.instrs.push_back(instr);
  const auto printed = program::print(program);
  ASSERT_FALSE(printed);
  EXPECT_EQ(printed.status().message(), "copy [1]: inputs 0 is below 1");
}

/// The files that `candela opt` reads in tests/ir/program, without the tool.
TEST(Text, FilesRoundTrip) {
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(CANDELA_SOURCE_DIR "/tests/ir/program")) {
    if (entry.path().extension() != ".cdl") continue;
    SCOPED_TRACE(entry.path().string());
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    Diagnostics diagnostics;
    const auto parsed = program::parse(text.str(), entry.path().string(), diagnostics);
    ++files;
    if (text.str().find("RUN: not candela") != std::string::npos) {
      EXPECT_FALSE(parsed);
      continue;
    }
    ASSERT_TRUE(parsed) << parsed.status().message();
    const auto printed = program::print(*parsed);
    ASSERT_TRUE(printed) << printed.status().message();
    const auto again = program::parse(*printed, entry.path().string(), diagnostics);
    ASSERT_TRUE(again) << again.status().message();
    EXPECT_EQ(*program::print(*again), *printed);
    const Bytes a = program::toImage(*parsed), b = program::toImage(*again);
    ASSERT_EQ(a.size(), b.size());
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size()), 0);
  }
  EXPECT_GE(files, 5);
}

} // namespace
} // namespace candela::test
