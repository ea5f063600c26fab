// Signals of the hardware in a file: another library, with waves, which is why they are apart.
#include <gmock/gmock.h>

#include <fstream>
#include <iterator>

#include "tests/rtl/bench4_program.h"

namespace {
using namespace candela;
using namespace candela::npu;
using namespace candela::rtl;
using testing::HasSubstr;
using testing::Not;

class NpuWaves : public testing::Test {
protected:
  /// Runs kCopies with waves. Returns what the device says against it.
  std::string run(const WaveOptions& waves) {
    TimedOptions options;
    options.waves = waves;
    Loaded loaded(assembled(kCopies));
    const std::unique_ptr<Device> device = makeRtlDevice(bench4(), std::move(options));
    EXPECT_FALSE(device->load(loaded.binary));
    for (const uint32_t region : {1u, 2u})
      EXPECT_FALSE(device->bind(region, loaded.regions[region]));
    const Result<RunReport> report = device->run();
    return report ? "" : report.message();
  }
};

TEST_F(NpuWaves, HaveTheCyclesThatWereAskedFor) {
  const std::string file = testing::TempDir() + "npu_waves.vcd";
  ASSERT_EQ(run({file, 5, 9}), "");
  std::ifstream stream(file);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  EXPECT_THAT(text, HasSubstr("u_control"));
  EXPECT_THAT(text, HasSubstr("\n#10\n")); // two times a cycle
  EXPECT_THAT(text, HasSubstr("\n#19\n"));
  EXPECT_THAT(text, Not(HasSubstr("\n#9\n")));
  EXPECT_THAT(text, Not(HasSubstr("\n#20\n")));
}

TEST_F(NpuWaves, SayWhereTheyCannotBeWritten) {
  EXPECT_THAT(run({"/nowhere/npu.vcd"}), HasSubstr("/nowhere/npu.vcd: No such file"));
  EXPECT_THAT(run({"/dev/full"}), HasSubstr("/dev/full: No space left"));
}

} // namespace
