#include "core/compiler/quantize/data.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "core/support/file.h"

namespace candela::quantize {
namespace {

class SamplesTest : public testing::Test {
protected:
  SamplesTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  std::string write(const std::string& name, const Tensor& tensor) {
    const std::string path = folder_ + "/" + name;
    EXPECT_TRUE(writeNpy(path, tensor));
    return path;
  }
  const std::string folder_ = testing::TempDir() + "candela_samples";
  const std::vector<Port> port_ = {{"x", Elem::f32_, {-1, 2}}};
};

TEST_F(SamplesTest, TakesTheFirstAxisForSamples) {
  const std::string path =
      write("any.npy", Tensor::of<uint8_t>(Elem::u8_, {3, 2}, {1, 2, 3, 4, 5, 6}));
  const Samples data = Samples::open({path}, port_, 1, {{"", {0.5, 1}}}).orAbort();
  EXPECT_EQ(data.runs(), 3);
  const Tensor second = data.run(1).orAbort()[0];
  EXPECT_EQ(second.typeText(), "f32[1,2]");
  EXPECT_EQ(second.as<float>()[0], 2.5f);
  EXPECT_EQ(second.as<float>()[1], 3.0f);
}

TEST_F(SamplesTest, JoinsTheFilesOfAFolder) {
  write("a.npy", Tensor::of<float>(Elem::f32_, {1, 2}, {1, 2}));
  write("b.npy", Tensor::of<float>(Elem::f32_, {2, 2}, {3, 4, 5, 6}));
  const Samples data = Samples::open({folder_}, port_, 2, {}).orAbort();
  EXPECT_EQ(data.samples(), 3);
  EXPECT_EQ(data.runs(), 1);
  EXPECT_EQ(data.run(0).orAbort()[0].as<float>()[2], 3);
}

TEST_F(SamplesTest, RefusesByName) {
  const std::string wide = write("wide.npy", Tensor::of<float>(Elem::f32_, {1, 3}, {1, 2, 3}));
  const std::string odd = write("odd.npy", Tensor::of<float>(Elem::f32_, {1, 2}, {1, NAN}));
  const std::string none = write("none.npy", Tensor::of<float>(Elem::f32_, {0, 2}, {}));
  const auto messageOf = [&](const std::vector<std::string>& sources) {
    return Samples::open(sources, port_, 1, {}).status().message();
  };
  EXPECT_THAT(messageOf({wide}),
              testing::HasSubstr("input 'x' is f32[-1,2] but the data is f32[1,3]"));
  EXPECT_THAT(messageOf({none}), testing::HasSubstr("no sample"));
  EXPECT_THAT(messageOf({}), testing::HasSubstr("no data for input 'x'"));
  const Samples data = Samples::open({odd}, port_, 1, {}).orAbort();
  EXPECT_THAT(data.run(0).status().message(), testing::HasSubstr("sample 0 of input 'x'"));
  const std::vector<Port> two = {{"x", Elem::f32_, {-1, 2}}, {"y", Elem::f32_, {-1, 2}}};
  EXPECT_THAT(Samples::open({odd}, two, 1, {}).status().message(),
              testing::HasSubstr("no input is named 'odd'; there are 'x', 'y'"));
}

} // namespace
} // namespace candela::quantize
