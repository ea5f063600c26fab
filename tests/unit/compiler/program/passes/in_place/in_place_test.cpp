// States that become one buffer, and those that must not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/compiler/program/passes/in_place/in_place.h"
#include "core/compiler/program/text.h"

namespace candela {
namespace {

using program::Program;
using program::passes::in_place::State;
using program::passes::in_place::updateInPlace;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// Two caches, of which the outputs stand in the other order, and something else that is computed.
constexpr const char* kCaches = R"(program @main {
  space @host {align 64}
  buffer %past_k input @host 64
  buffer %rows input @host 8
  buffer %at input @host 4
  buffer %past_v input @host 64
  buffer %y output @host 8
  buffer %present_v output @host 64
  buffer %present_k output @host 64
  %BEFORE
  copy @in %past_k[16]:f32, @out %present_k[16]:f32
  scatter.set @in %at[1]:i32, @in %rows[1,1,2]:f32, @inout %present_k[1,8,2]:f32
  copy @in %past_v[16]:f32, @out %present_v[16]:f32
  scatter.set @in %at[1]:i32, @in %rows[1,1,2]:f32, @inout %present_v[1,8,2]:f32
  %BEHIND
  unary.neg @in %rows[2]:f32, @out %y[2]:f32
}
)";

Program caches(const std::string& before = "", const std::string& behind = "") {
  std::string text = kCaches;
  text.replace(text.find("%BEFORE"), 7, before);
  text.replace(text.find("%BEHIND"), 7, behind);
  Diagnostics diagnostics;
  auto program = program::parse(text, "caches.cdl", diagnostics);
  EXPECT_TRUE(program) << diagnostics.status().message();
  return std::move(program).value();
}

std::string textOf(const Program& program) { return program::print(program).value(); }

const std::vector<State> kStates = {{"past_k", "present_k"}, {"past_v", "present_v"}};

TEST(InPlace, StatesBecomeOneBufferEach) {
  Program program = caches();
  EXPECT_THAT(updateInPlace(program, kStates), ElementsAre(2, 1, 0));
  ASSERT_TRUE(program::verify(program));
  const std::string text = textOf(program);
  EXPECT_THAT(text, HasSubstr("buffer %past_k inout @host 64"));
  EXPECT_THAT(text, HasSubstr("buffer %past_v inout @host 64"));
  EXPECT_THAT(text, HasSubstr("@inout %past_k[1,8,2]:f32"));
  EXPECT_THAT(text, Not(HasSubstr("present")));
  EXPECT_THAT(text, Not(HasSubstr("copy")));
}

TEST(InPlace, OnlyStatesThatAreNamed) {
  Program program = caches();
  EXPECT_THAT(updateInPlace(program, {{"past_v", "present_v"}, {"rows", "y"}, {"no", "such"}}),
              ElementsAre(1, 0, 2));
  EXPECT_THAT(textOf(program), HasSubstr("buffer %past_k input @host 64"));
}

TEST(InPlace, NotWhereTheOldOneIsReadOtherwise) {
  for (const char* read : {"unary.neg @in %past_k[2]:f32, @out %y[2]:f32",
                           "copy @in %past_k[2]:f32, @out %present_v[2]:f32"})
    for (const bool isBefore : {true, false}) {
      Program program = caches(isBefore ? read : "", isBefore ? "" : read);
      updateInPlace(program, {kStates[0]});
      EXPECT_THAT(textOf(program), HasSubstr("buffer %past_k input @host 64"))
          << read << (isBefore ? " before" : " behind");
    }
}

TEST(InPlace, NotWhereTheNewOneIsTouchedBefore) {
  Program program = caches("unary.neg @in %rows[2]:f32, @out %present_k[2]:f32");
  updateInPlace(program, {kStates[0]});
  EXPECT_THAT(textOf(program), HasSubstr("buffer %present_k output @host 64"));
}

TEST(InPlace, NotOfAPart) {
  Program program = caches();
  program.instrs[0].inputs[0].dims = {8};
  program.instrs[0].outputs[0].dims = {8};
  updateInPlace(program, {kStates[0]});
  EXPECT_THAT(textOf(program), HasSubstr("buffer %past_k input @host 64"));
}

} // namespace
} // namespace candela
