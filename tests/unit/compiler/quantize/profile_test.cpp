#include "core/compiler/quantize/profile.h"

#include <gmock/gmock.h>

namespace candela::quantize {
namespace {

Profile example() {
  Profile profile;
  profile.model = "0123456789abcdef0123";
  profile.samples = 2;
  profile.values["a b"].add(Tensor::of<float>(Elem::f32_, {1, 2}, {0.1f, -7}), true);
  profile.values["c"].add(Tensor::of<float>(Elem::f32_, {3}, {0, NAN, 1e20f}), false);
  return profile;
}

TEST(ProfileTest, ReadsBackWhatItWrote) {
  const std::string text = example().text();
  const Profile read = Profile::parse(text, "p").orAbort();
  EXPECT_EQ(read.text(), text);
  EXPECT_EQ(read.values.at("a b").channels.size(), 2u);
  EXPECT_EQ(read.values.at("c").notFinite, 1u);
}

TEST(ProfileTest, AddsUp) {
  Profile profile = example();
  ASSERT_TRUE(profile.merge(example(), "p"));
  EXPECT_EQ(profile.samples, 4u);
  EXPECT_EQ(profile.values.at("a b").count, 4u);
}

TEST(ProfileTest, RefusesAnotherModel) {
  Profile profile = example(), other = example();
  other.model = "f123456789abcdef0123";
  EXPECT_THAT(profile.merge(other, "p.txt").message(),
              testing::HasSubstr("p.txt: the profile is of another model"));
}

TEST(ProfileTest, RefusesWhatIsNoProfile) {
  const std::string text = example().text();
  const auto messageOf = [](const std::string& given) {
    return Profile::parse(given, "p").status().message();
  };
  EXPECT_THAT(messageOf("candela-profile 2\nend\n"), testing::HasSubstr("not a profile of this"));
  EXPECT_THAT(messageOf(""), testing::HasSubstr("cut off"));
  EXPECT_THAT(messageOf(text.substr(0, text.size() - 4)), testing::HasSubstr("cut off"));
  std::string broken = text;
  broken.replace(broken.find("range"), 5, "ran-e");
  EXPECT_THAT(messageOf(broken), testing::HasSubstr("p:5: unknown word 'ran-e'"));
  // Whatever is cut or changed, it is refused or read, and nothing else happens.
  for (size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ 5);
    (void)Profile::parse(changed, "p");
    (void)Profile::parse(text.substr(0, i), "p");
  }
}

} // namespace
} // namespace candela::quantize
