#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "core/compiler/graph/graph.h"
#include "core/compiler/import/formats.h"
#include "core/compiler/import/script.h"
#include "core/support/file.h"

/// What tests of damaged models share: their seeds, the import of one, and what they judge it by.
namespace candela::test {

/// What import may take beyond what the process had, in kilobytes. AddressSanitizer keeps what is
/// freed.
#ifdef __SANITIZE_ADDRESS__
inline constexpr int64_t kMostMemory = 2048 * 1024;
#else
inline constexpr int64_t kMostMemory = 512 * 1024;
#endif

inline int64_t peakKilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

/// The contents of a folder's files with this extension, by their names.
inline std::vector<std::string> seedsIn(const char* folder, const char* extension) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == extension) paths.push_back(entry.path());
  std::ranges::sort(paths);
  std::vector<std::string> contents;
  for (const std::filesystem::path& path : paths) {
    const auto bytes = mapFile(path.string());
    if (bytes) contents.emplace_back(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  }
  return contents;
}

/// Every line names the file and says something.
inline void judge(const Status& status, const std::string& path, const std::string& what) {
  EXPECT_NE(status.code(), Code::internal) << what << ": " << status.message();
  std::istringstream lines(status.message());
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    EXPECT_TRUE(line.starts_with(path + ": ")) << what << ": " << line;
    EXPECT_GT(line.size(), path.size() + 5) << what << ": " << line;
  }
  EXPECT_GT(count, 0) << what;
}

/// Whether a content is taken as the file `path`, which need not exist. Free dims are 2.
inline bool isTaken(const std::string& content, const std::string& path, const std::string& what) {
  const Bytes bytes = Bytes::copyOf(content.data(), content.size());
  auto model = import::parseModel(bytes, path);
  if (!model) {
    judge(model.status(), path, what);
    return false;
  }
  import::ImportOptions options;
  for (const import::onnx_io::ValueInfo& input : model->graph.inputs)
    for (const import::onnx_io::Dim& dim : input.dims)
      if (dim.value < 0 && !dim.name.empty()) options.dims[dim.name] = 2;
  const auto script = import::importScript(
      std::make_shared<const import::onnx_io::Model>(*std::move(model)), options);
  if (!script) judge(script.status(), path, what);
  return script.isOk();
}

/// Damages each seed in turn, `count` times in all: every mutant is taken or refused, in bounded
/// memory.
template <typename Mutants>
void importMutants(const std::vector<std::string>& contents, const char* path, uint64_t seed,
                   int count) {
  const int64_t before = peakKilobytes();
  Mutants mutants(seed);
  int taken = 0;
  for (int i = 0; i < count; ++i) {
    const std::string& content = contents[static_cast<size_t>(i) % contents.size()];
    const std::string what = fmt::format("seed {} mutant {}", seed, i);
    try {
      taken += isTaken(mutants.damage(content), path, what);
    } catch (const std::bad_alloc&) {
      ADD_FAILURE() << what << " took all memory";
    }
  }
  // Both happen, or the mutants are too small or too large.
  EXPECT_GT(taken, count / 50);
  EXPECT_LT(taken, count * 9 / 10);
  EXPECT_LT(peakKilobytes() - before, kMostMemory);
}

} // namespace candela::test
