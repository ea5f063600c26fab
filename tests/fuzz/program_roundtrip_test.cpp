// Image -> Program -> text -> Program -> image gives the same bytes, for random Programs.
// CANDELA_FUZZ_SEED=<n> runs one seed alone and prints its text.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>

#include "core/compiler/program/image.h"
#include "core/compiler/program/text.h"
#include "tests/fuzz/random_program.h"

namespace candela::test {
namespace {

#ifndef CANDELA_ROUND_TRIPS
#define CANDELA_ROUND_TRIPS 10000
#endif

::testing::AssertionResult sameBytes(const Bytes& a, const Bytes& b) {
  if (a.size() != b.size())
    return ::testing::AssertionFailure() << a.size() << " and " << b.size() << " bytes";
  for (uint64_t i = sizeof(cdl_image_t); i < a.size(); ++i) // the hash lies in front
    if (a.data()[i] != b.data()[i])
      return ::testing::AssertionFailure() << "byte " << i << " of " << a.size() << " differs";
  return ::testing::AssertionSuccess();
}

program::PayloadSource payloadsOf(const program::Program& program) {
  auto byHash = std::make_shared<std::map<std::string, Payload>>();
  for (const program::Constant& constant : program.constants)
    byHash->emplace(std::string(elemName(constant.payload.elem())) +
                        hashText(constant.payload.hash()),
                    constant.payload);
  return [byHash](const cdl_constant_t& constant) -> Result<Payload> {
    Hash hash;
    std::memcpy(hash.data(), constant.hash, hash.size());
    const auto found =
        byHash->find(std::string(elemName(static_cast<Elem>(constant.elem))) + hashText(hash));
    if (found == byHash->end())
      return failure(Code::not_found, "no payload with hash {}", hashText(hash));
    return found->second;
  };
}

class RoundTrip : public ::testing::Test {
protected:
  void SetUp() override {
    directory_ = std::filesystem::path(::testing::TempDir()) /
                 fmt::format("candela_round_trip_{}", getpid());
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void check(uint64_t seed, bool show) {
    RandomOptions options;
    options.largeConstants = seed % 50 == 0;
    const program::Program built = randomProgram(seed, options);
    const Status status = program::verify(built);
    ASSERT_TRUE(status) << status.message();
    const Bytes image = program::toImage(built);
    const auto read = program::fromImage(image, payloadsOf(built));
    ASSERT_TRUE(read) << read.status().message();
    ASSERT_TRUE(sameBytes(image, program::toImage(*read)));
    program::PrintOptions print;
    print.resourceDirectory = directory_.string();
    const auto text = program::print(*read, print);
    ASSERT_TRUE(text) << text.status().message();
    if (show) puts(text->c_str());
    Diagnostics diagnostics;
    const auto parsed = program::parse(*text, (directory_ / "program.cdl").string(), diagnostics);
    ASSERT_TRUE(parsed) << parsed.status().message() << "\n" << *text;
    ASSERT_TRUE(sameBytes(image, program::toImage(*parsed))) << *text;
    kinds_.resize(64);
    for (const program::Instr& instr : parsed->instrs) ++kinds_[instr.kind];
    loops_ += parsed->loops.size();
    groups_ += parsed->groups.size();
  }

  std::filesystem::path directory_;
  std::vector<int> kinds_;
  size_t loops_ = 0, groups_ = 0;
};

TEST_F(RoundTrip, RandomPrograms) {
  if (const char* seed = std::getenv("CANDELA_FUZZ_SEED"))
    return check(std::strtoull(seed, nullptr, 0), true);
  for (uint64_t seed = 0; seed < CANDELA_ROUND_TRIPS && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("CANDELA_FUZZ_SEED={}", seed));
    check(seed, false);
  }
  if (HasFatalFailure()) return;
#define CANDELA_KIND(name, id, primitive, ...)                                                     \
  EXPECT_GT(kinds_[id], CANDELA_ROUND_TRIPS / 20) << #name;
  CDL_KINDS(CANDELA_KIND)
#undef CANDELA_KIND
  EXPECT_GT(loops_, CANDELA_ROUND_TRIPS / 20);
  EXPECT_GT(groups_, CANDELA_ROUND_TRIPS / 20);
  RecordProperty("seeds", CANDELA_ROUND_TRIPS);
}

} // namespace
} // namespace candela::test
