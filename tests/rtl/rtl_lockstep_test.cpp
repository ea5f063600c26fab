#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/isa/assembler.h"
#include "simulator/rtl_model/lockstep.h"

namespace {
using namespace candela::npu;
using testing::HasSubstr;
using Kind = RtlEvent::Kind;

/// Two words of the control processor, one in each cycle.
struct Program {
  Program() {
    binary = *assemble(".config gem16\nmovi x=x1 value=1\nhalt\n", "two", std::nullopt);
    for (uint32_t i = 0; i < 2; ++i) {
      InstructionTime time;
      time.instruction = i;
      time.start = 10 + i;
      time.done = 11 + i;
      times[0].push_back(time);
    }
  }
  Binary binary;
  ScheduledTimes times;
};

TEST(Lockstep, FollowsWhatIsInStep) {
  const Program program;
  Lockstep lockstep(program.binary, program.times);
  EXPECT_TRUE(lockstep.take({Kind::kBegin, 0, 0, 10}));
  EXPECT_TRUE(lockstep.take({Kind::kRetire, 0, 0, 11}));
  EXPECT_TRUE(lockstep.take({Kind::kBegin, 0, 1, 11}));
  EXPECT_TRUE(lockstep.take({Kind::kRetire, 0, 1, 12}));
  EXPECT_EQ(lockstep.difference(), "");
}

TEST(Lockstep, NamesTheFirstThatDiffers) {
  const Program program;
  Lockstep lockstep(program.binary, program.times);
  EXPECT_TRUE(lockstep.take({Kind::kBegin, 0, 0, 10}));
  EXPECT_FALSE(lockstep.take({Kind::kRetire, 0, 0, 14}));
  EXPECT_THAT(lockstep.difference(),
              HasSubstr("instruction 0, movi of control, ends in cycle 14 of the hardware, 11 of "
                        "the model; the last events of the hardware:\n"
                        "  cycle 10: instruction 0, movi of control, begins"));
}

TEST(Lockstep, NamesWhatTheModelHasNot) {
  const Program program;
  Lockstep lockstep(program.binary, program.times);
  EXPECT_FALSE(lockstep.take({Kind::kBegin, 0, 1, 10}));
  EXPECT_THAT(lockstep.difference(), HasSubstr("the model has no such instruction there"));
}

TEST(Lockstep, ShowsTheLastTenEvents) {
  Program program;
  program.times[0].clear();
  for (int i = 0; i < 30; ++i) {
    InstructionTime time;
    time.start = i;
    time.done = i + 1;
    program.times[0].push_back(time);
  }
  Lockstep lockstep(program.binary, program.times);
  for (int i = 0; i < 29; ++i) EXPECT_TRUE(lockstep.take({Kind::kBegin, 0, 0, i}));
  EXPECT_FALSE(lockstep.take({Kind::kBegin, 0, 0, 99}));
  const std::string& text = lockstep.difference();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 10);
}

} // namespace
