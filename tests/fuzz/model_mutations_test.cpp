// Damaged models of one format: import gives a Graph or one clear error, in bounded memory. The
// seed is fixed; what is found stays found. CANDELA_TEST_SIZE=nightly: 100,000 mutants.
//
// Where it is built: MODEL_SEEDS is the folder of the models, MODEL_EXTENSION that of their files,
// and CUTS_ARE_REFUSED says whether a file whose end is missing can never be one.

#include <random>

#include "tests/fuzz/damaged_models.h"

namespace candela::test {
namespace {

constexpr uint64_t kSeed = 20251128;
constexpr const char* kPath = "damaged" MODEL_EXTENSION; // which need not exist

std::vector<std::string> seeds() { return seedsIn(MODEL_SEEDS, MODEL_EXTENSION); }

class Mutants {
public:
  explicit Mutants(uint64_t seed) : random_(seed) {}

  /// The content with one to four things changed: cut, bits, bytes, words as a writer of tables
  /// might have them.
  std::string damage(std::string content) {
    const size_t count = 1 + pick(4);
    for (size_t i = 0; i < count && content.size() > 8; ++i) damageOnce(content);
    return content;
  }

private:
  size_t pick(size_t below) { return random_() % below; } // the same on every library

  void damageOnce(std::string& content) {
    constexpr uint32_t kWords[] = {0, 1, 4, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffff0, 1000};
    const size_t at = pick(content.size() - 4);
    switch (pick(5)) {
    case 0: content[at] = static_cast<char>(content[at] ^ (1 << pick(8))); return;
    case 1: content[at] = static_cast<char>(pick(256)); return;
    case 2: std::memcpy(&content[at & ~size_t(3)], &kWords[pick(std::size(kWords))], 4); return;
    case 3: {
      const size_t from = pick(content.size() - 4);
      std::memmove(&content[at], &content[from], 4);
      return;
    }
    default:
      if (pick(8) == 0) content.resize(at);
    }
  }

  std::mt19937_64 random_;
};

TEST(ModelMutations, AreTakenOrRefused) {
  const char* size = std::getenv("CANDELA_TEST_SIZE");
  const int count = size && std::string_view(size) == "nightly" ? 100000 : 2000;
  const std::vector<std::string> contents = seeds();
  ASSERT_GE(contents.size(), 14u) << MODEL_SEEDS;
  importMutants<Mutants>(contents, kPath, kSeed, count);
}

TEST(ModelMutations, TruncationsAreRefused) {
  for (const std::string& content : seeds())
    for (size_t i = 0; i < 60; ++i) {
      const size_t size = content.size() * i / 60;
      const std::string what = fmt::format("cut at {} of {}", size, content.size());
      const bool taken = isTaken(content.substr(0, size), kPath, what);
      EXPECT_FALSE(taken && CUTS_ARE_REFUSED) << what;
    }
}

} // namespace
} // namespace candela::test
