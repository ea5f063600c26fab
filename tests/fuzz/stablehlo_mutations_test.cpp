// Damaged texts of StableHLO: import gives a Graph or clear errors, in bounded memory. The seed is
// fixed; what is found stays found. CANDELA_TEST_SIZE=nightly: 20,000 mutants.

#include <random>

#include "tests/fuzz/damaged_models.h"

namespace candela::test {
namespace {

constexpr uint64_t kSeed = 20261129;
constexpr const char* kPath = "damaged.mlir"; // which need not exist

std::vector<std::string> seeds() { return seedsIn(STABLEHLO_SEEDS, ".mlir"); }

class Mutants {
public:
  explicit Mutants(uint64_t seed) : random_(seed) {}

  /// The text with one to three things changed: characters, numbers, words of others, lines.
  std::string damage(std::string content) {
    const size_t count = 1 + pick(3);
    for (size_t i = 0; i < count && content.size() > 16; ++i) damageOnce(content);
    return content;
  }

private:
  size_t pick(size_t below) { return random_() % below; } // the same on every library

  size_t lineAt(const std::string& content, size_t at) {
    const size_t found = content.rfind('\n', at);
    return found == content.npos ? 0 : found + 1;
  }

  void damageOnce(std::string& content) {
    const size_t at = pick(content.size() - 8);
    switch (pick(7)) {
    case 0: content[at] = static_cast<char>(pick(256)); return;
    case 1: content.erase(at, 1 + pick(4)); return;
    case 2: replaceNumber(content, at); return;
    case 3: replaceWord(content, at); return;
    case 4: { // a line twice
      const size_t begin = lineAt(content, at);
      const size_t end = std::min(content.find('\n', at), content.size() - 1) + 1;
      content.insert(begin, content.substr(begin, end - begin));
      return;
    }
    case 5: { // a line away
      const size_t begin = lineAt(content, at);
      const size_t end = std::min(content.find('\n', at), content.size() - 1) + 1;
      content.erase(begin, end - begin);
      return;
    }
    default:
      if (pick(6) == 0) content.resize(at);
    }
  }

  void replaceNumber(std::string& content, size_t at) {
    constexpr const char* kNumbers[] = {
        "0", "1", "-1", "7", "2147483648", "9223372036854775807", "4096", "1000000"};
    const size_t begin = content.find_first_of("0123456789", at);
    if (begin == content.npos) return;
    const size_t end = content.find_first_not_of("0123456789", begin);
    content.replace(begin, std::min(end, content.size()) - begin,
                    kNumbers[pick(std::size(kNumbers))]);
  }

  void replaceWord(std::string& content, size_t at) {
    constexpr const char* kWords[] = {"stablehlo.add",
                                      "stablehlo.while",
                                      "stablehlo.gather",
                                      "tensor<f32>",
                                      "dense<0>",
                                      "%arg0",
                                      "call @main()",
                                      "({",
                                      "})"};
    const size_t begin = content.find(' ', at);
    if (begin == content.npos) return;
    const size_t end = content.find_first_of(" \n", begin + 1);
    const size_t length = std::min(end, content.size()) - begin;
    content.replace(begin, length, std::string(" ") + kWords[pick(std::size(kWords))]);
  }

  std::mt19937_64 random_;
};

bool isTextTaken(const std::string& content, const std::string& what) {
  return isTaken(content, kPath, what);
}

TEST(StablehloMutations, AreTakenOrRefused) {
  const char* size = std::getenv("CANDELA_TEST_SIZE");
  const int count = size && std::string_view(size) == "nightly" ? 20000 : 1000;
  const std::vector<std::string> contents = seeds();
  ASSERT_GE(contents.size(), 50u) << STABLEHLO_SEEDS;
  importMutants<Mutants>(contents, kPath, kSeed, count);
}

TEST(StablehloMutations, TruncationsAreRefused) {
  for (const std::string& content : seeds())
    for (size_t i = 0; i < 20; ++i) {
      const size_t size = content.size() * i / 20;
      const std::string what = fmt::format("cut at {} of {}", size, content.size());
      EXPECT_FALSE(isTextTaken(content.substr(0, size), what)) << what;
    }
}

/// A text that makes much out of little is refused before it does.
TEST(StablehloMutations, BombsAreRefused) {
  const int64_t before = peakKilobytes();
  std::string nested = "module {\n";
  for (int i = 0; i < 30; ++i) // each function calls the next one twice
    nested += fmt::format("func.func {} @{}(%a: tensor<f32>) -> tensor<f32> {{\n"
                          "%0 = call @f{}(%a) : (tensor<f32>) -> tensor<f32>\n"
                          "%1 = call @f{}(%0) : (tensor<f32>) -> tensor<f32>\n"
                          "return %1 : tensor<f32> }}\n",
                          i == 0 ? "public" : "private", i == 0 ? "main" : fmt::format("f{}", i),
                          i + 1, i + 1);
  nested +=
      "func.func private @f30(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }\n}\n";
  EXPECT_FALSE(isTextTaken(nested, "calls"));
  EXPECT_FALSE(isTextTaken("module {\nfunc.func @main() -> tensor<f32> {\n"
                           "%0 = call @main() : () -> tensor<f32>\nreturn %0 : tensor<f32> }\n}\n",
                           "recursion"));
  EXPECT_FALSE(isTextTaken("module {\nfunc.func @main() -> tensor<99999999999xi64> {\n"
                           "%0 = stablehlo.iota dim = 0 : tensor<99999999999xi64>\n"
                           "return %0 : tensor<99999999999xi64> }\n}\n",
                           "iota"));
  EXPECT_FALSE(isTextTaken("module attributes {a = " + std::string(100000, '[') + "} {}", "lists"));
  EXPECT_FALSE(isTextTaken("module " + std::string(100000, '{'), "brackets"));
  std::string modules;
  for (int i = 0; i < 10000; ++i) modules += "module { ";
  EXPECT_FALSE(isTextTaken(modules, "modules"));
  EXPECT_LT(peakKilobytes() - before, kMostMemory);
}

} // namespace
} // namespace candela::test
