// Damaged models of one format: import gives a Graph or one clear error, in bounded memory. The
// seed is fixed; what is found stays found. CANDELA_TEST_SIZE=nightly: 100,000 mutants.
//
// Where it is built: MODEL_SEEDS is the folder of the models, MODEL_EXTENSION that of their files,
// and CUTS_ARE_REFUSED says whether a file whose end is missing can never be one.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <random>
#include <sstream>

#include "core/compiler/graph/graph.h"
#include "core/compiler/import/formats.h"
#include "core/compiler/import/script.h"
#include "core/support/file.h"

namespace candela::test {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kSeed = 20251128;
constexpr const char* kPath = "damaged" MODEL_EXTENSION; // which need not exist

/// What it may take beyond what the process had, in kilobytes. AddressSanitizer keeps what is
/// freed.
#ifdef __SANITIZE_ADDRESS__
constexpr int64_t kMostMemory = 2048 * 1024;
#else
constexpr int64_t kMostMemory = 512 * 1024;
#endif

int64_t peakKilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

std::vector<std::string> seeds() {
  std::vector<std::string> contents;
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(MODEL_SEEDS))
    if (entry.path().extension() == MODEL_EXTENSION) paths.push_back(entry.path());
  std::ranges::sort(paths);
  for (const fs::path& path : paths) {
    const auto bytes = mapFile(path.string());
    if (bytes) contents.emplace_back(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  }
  return contents;
}

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

/// Every line names the file and says something.
void judge(const Status& status, const std::string& what) {
  EXPECT_NE(status.code(), Code::internal) << what << ": " << status.message();
  std::istringstream lines(status.message());
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    EXPECT_TRUE(line.starts_with(fmt::format("{}: ", kPath))) << what << ": " << line;
    EXPECT_GT(line.size(), std::strlen(kPath) + 5) << what << ": " << line;
  }
  EXPECT_GT(count, 0) << what;
}

/// Whether it was taken.
bool import(const std::string& content, const std::string& what) {
  const Bytes bytes = Bytes::copyOf(content.data(), content.size());
  auto model = import::parseModel(bytes, kPath);
  if (!model) {
    judge(model.status(), what);
    return false;
  }
  import::ImportOptions options;
  for (const import::onnx_io::ValueInfo& input : model->graph.inputs)
    for (const import::onnx_io::Dim& dim : input.dims)
      if (dim.value < 0 && !dim.name.empty()) options.dims[dim.name] = 2;
  const auto script = import::importScript(
      std::make_shared<const import::onnx_io::Model>(*std::move(model)), options);
  if (!script) judge(script.status(), what);
  return script.isOk();
}

TEST(ModelMutations, AreTakenOrRefused) {
  const char* size = std::getenv("CANDELA_TEST_SIZE");
  const int count = size && std::string_view(size) == "nightly" ? 100000 : 2000;
  const std::vector<std::string> contents = seeds();
  ASSERT_GE(contents.size(), 14u) << MODEL_SEEDS;
  const int64_t before = peakKilobytes();
  Mutants mutants(kSeed);
  int taken = 0;
  for (int i = 0; i < count; ++i) {
    const std::string& content = contents[static_cast<size_t>(i) % contents.size()];
    const std::string what = fmt::format("seed {} mutant {}", kSeed, i);
    try {
      taken += import(mutants.damage(content), what);
    } catch (const std::bad_alloc&) {
      ADD_FAILURE() << what << " took all memory";
    }
  }
  // Both happen, or the mutants are too small or too large.
  EXPECT_GT(taken, count / 50);
  EXPECT_LT(taken, count * 9 / 10);
  EXPECT_LT(peakKilobytes() - before, kMostMemory);
}

TEST(ModelMutations, TruncationsAreRefused) {
  for (const std::string& content : seeds())
    for (size_t i = 0; i < 60; ++i) {
      const size_t size = content.size() * i / 60;
      const std::string what = fmt::format("cut at {} of {}", size, content.size());
      const bool taken = import(content.substr(0, size), what);
      EXPECT_FALSE(taken && CUTS_ARE_REFUSED) << what;
    }
}

} // namespace
} // namespace candela::test
