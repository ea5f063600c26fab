// Stored executables the whole way: compiled, stored, loaded and run, by several threads at once,
// and damaged in every part of the file.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "backends/cpu/runtime/blob.hpp"
#include "core/compiler/driver/pipeline.h"
#include "tests/backends/cpu/machine.h"
#include "tests/fuzz/random_program.h"

namespace candela::test {
namespace {

namespace fs = std::filesystem;
using runtime::session::Session;

/// Bytes of a file, by what they mean.
struct Region {
  const char* name;
  size_t begin, end;
};

class CpuStored : public testing::Test {
protected:
  CpuStored() : path_(fs::temp_directory_path() / fmt::format("candela_stored_{}.cdb", getpid())) {}
  ~CpuStored() override { fs::remove(path_); }

  /// The digits network for so many images, compiled and stored: the bytes of its bundle.
  std::string store(int64_t images) {
    auto model = driver::loadAny(CANDELA_SOURCE_DIR "/examples/digits/digits.onnx",
                                 {.dims = {{"N", images}}});
    if (!model) return ADD_FAILURE() << model.status().message(), "";
    const std::vector<std::shared_ptr<runtime::plugin::Device>> devices = {openCpu("best", 2)};
    auto session =
        driver::compile(std::get<graph::Graph>(std::move(*model)), "digits", devices, {});
    if (!session) return ADD_FAILURE() << session.status().message(), "";
    if (Status saved = (*session)->save(path_); !saved) ADD_FAILURE() << saved.message();
    fresh_ = std::move(*session);
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  Result<std::unique_ptr<Session>> load(const std::string& bytes, int threads = 1) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
    CDL_ASSIGN(runtime::bundle::Bundle bundle, runtime::bundle::loadBundle(path_));
    const std::vector<std::shared_ptr<runtime::plugin::Device>> devices = {
        openCpu("best", threads)};
    return Session::create(std::move(bundle), devices);
  }
  static std::vector<Tensor> inputs(const Session& session, uint64_t seed) {
    std::vector<Tensor> made;
    for (uint32_t v : session.bundle().inputs) {
      const runtime::bundle::BundleValue& value = session.bundle().values[v];
      made.push_back(*randomTensor(value.elem, value.dims, seed));
    }
    return made;
  }
  static std::string answer(Session& session, uint64_t seed) {
    const auto out = session.run(inputs(session, seed));
    if (!out) return out.status().message();
    const Bytes& bytes = (*out)[0].bytes;
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  static std::vector<Region> regions(const std::string& file) {
    const size_t image = file.find("CDLP"), blob = file.find("CCPU");
    if (image == std::string::npos || blob == std::string::npos)
      return ADD_FAILURE() << "no image or no executable", std::vector<Region>();
    cpu::BlobHeader h;
    std::memcpy(&h, file.data() + blob, sizeof h);
    std::vector<Region> all = {{"file header", 0, 56},
                               {"manifest", 56, 120},
                               {"image", image, blob},
                               {"header", blob, blob + sizeof h}};
    static constexpr const char* kNames[] = {"calls", "arguments", "constants", "code"};
    for (size_t i = 0; i < 4; ++i)
      all.push_back({kNames[i], all.back().end, all.back().end + h.sections[i].bytes});
    EXPECT_EQ(all.back().end, file.size());
    return all;
  }

  std::string path_;
  std::unique_ptr<Session> fresh_; ///< what was compiled
};

TEST_F(CpuStored, AnswersAsWhenItWasCompiled) {
  const std::string file = store(3);
  auto loaded = load(file);
  ASSERT_TRUE(loaded) << loaded.status().message();
  EXPECT_EQ(answer(**loaded, 5), answer(*fresh_, 5));
  EXPECT_NE(answer(**loaded, 5), answer(*fresh_, 6));
  // Loaded and stored again it is the same file.
  ASSERT_TRUE((*loaded)->save(path_ + ".again"));
  std::ifstream again(path_ + ".again", std::ios::binary);
  EXPECT_TRUE(std::string(std::istreambuf_iterator<char>(again), {}) == file);
  fs::remove(path_ + ".again");
}

TEST_F(CpuStored, HoldsItsConstantsOnce) {
  const std::string file = store(1);
  auto loaded = load(file);
  ASSERT_TRUE(loaded) << loaded.status().message();
  EXPECT_TRUE((*loaded)->bundle().constants.empty());
  // 35 k parameters of four bytes, and padding of channels; beside them calls, code and the image.
  const auto all = regions(file);
  ASSERT_EQ(all.size(), 8u);
  EXPECT_GT(all[6].end - all[6].begin, 35000u * 4);
  EXPECT_LT(all[6].end - all[6].begin, 35000u * 4 * 3 / 2);
}

TEST_F(CpuStored, AnotherBackendDoesNotTakeIt) {
  store(1);
  auto bundle = runtime::bundle::loadBundle(path_);
  ASSERT_TRUE(bundle) << bundle.status().message();
  const auto plugin = runtime::plugin::findPlugin(PLUGIN_template);
  ASSERT_TRUE(plugin) << plugin.status().message();
  const auto device = (*plugin)->open(0, {});
  ASSERT_TRUE(device) << device.status().message();
  bundle->partitions[0].backend = "template";
  const std::vector<std::shared_ptr<runtime::plugin::Device>> devices = {*device};
  const auto session = Session::create(*std::move(bundle), devices);
  ASSERT_FALSE(session);
  EXPECT_EQ(session.status().message(),
            "template: the bundle holds an executable of template 0.1.0, which it cannot load");
}

TEST_F(CpuStored, SeveralExecutionsAtOnce) {
  const std::string file = store(2);
  auto loaded = load(file, 2);
  ASSERT_TRUE(loaded) << loaded.status().message();
  constexpr uint64_t kThreads = 6, kRuns = 40;
  std::vector<std::string> expected;
  for (uint64_t seed = 0; seed < kThreads; ++seed) expected.push_back(answer(*fresh_, seed));
  std::vector<int> equal(kThreads, 0);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (uint64_t run = 0; run < kRuns; ++run) {
        const uint64_t seed = (t + run) % kThreads;
        equal[t] += answer(**loaded, seed) == expected[seed];
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(equal, std::vector<int>(kThreads, kRuns));
}

/// Refused by name, or as good as the sound one.
class CpuDamaged : public CpuStored {
protected:
  void tryIt(const std::string& bytes, const std::string& expected, const std::string& what) {
    auto session = load(bytes);
    ++tried_;
    if (session) {
      EXPECT_TRUE(answer(**session, 1) == expected) << what;
      return;
    }
    ++refused_;
    EXPECT_TRUE(session.status().code() == Code::bad_model ||
                session.status().code() == Code::incompatible)
        << what << ": " << session.status().message();
    const std::string& message = session.status().message();
    EXPECT_TRUE(message.find(path_) != std::string::npos ||
                message.find("stored executable") != std::string::npos)
        << what << ": " << message;
  }
  int tried_ = 0, refused_ = 0;
};

TEST_F(CpuDamaged, IsRefusedByNameOrRunsAsBefore) {
  const std::string file = store(1), expected = answer(*fresh_, 1);
  Random random(3);
  const auto within = [&](size_t begin, size_t end) {
    return static_cast<size_t>(
        random.in(static_cast<int64_t>(begin), static_cast<int64_t>(end) - 1));
  };
  for (const Region& region : regions(file)) {
    const int before = refused_;
    for (int i = 0; i < 48; ++i) {
      std::string damaged = file;
      const size_t at = within(region.begin, region.end);
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << random.in(0, 7)));
      tryIt(damaged, expected, fmt::format("{} at {}", region.name, at));
    }
    EXPECT_GT(refused_ - before, 40) << region.name; // some are padding
  }
  for (int i = 0; i < 64; ++i) tryIt(file.substr(0, within(0, file.size())), expected, "cut");
  for (int i = 0; i < 64; ++i) { // pieces that changed places
    std::string damaged = file;
    const size_t length = size_t(64) << random.in(0, 4);
    const size_t a = within(0, file.size() / 2 - length),
                 b = within(file.size() / 2, file.size() - length);
    damaged.replace(a, length, file, b, length).replace(b, length, file, a, length);
    tryIt(damaged, expected, fmt::format("{} bytes at {} and {}", length, a, b));
  }
  EXPECT_GE(tried_, 500);
  EXPECT_GT(refused_, 480);
}

TEST_F(CpuDamaged, AnotherVersionIsNamed) {
  std::string file = store(1);
  const size_t blob = file.find("CCPU");
  file[4 + 2] = 9; // the minor version of the file
  auto session = load(file);
  ASSERT_FALSE(session);
  EXPECT_EQ(session.status().message(), path_ + ": bundle version 0.9, this program reads 0.2");
  file = store(1);
  file[blob + 4] = 77;
  session = load(file);
  ASSERT_FALSE(session);
  EXPECT_EQ(session.status().code(), Code::incompatible);
  EXPECT_NE(session.status().message().find(
                "stored executable has format 77 and was made by cpu 0.1.0 with LLVM 19."),
            std::string::npos)
      << session.status().message();
}

TEST_F(CpuDamaged, TheExecutableOfAnotherModelIsNamed) {
  const std::string two = store(2), one = store(1);
  const size_t from = one.find("CCPU"), other = two.find("CCPU");
  // What the headers say of sizes stays: only the bytes of the executable change.
  std::string mixed = one;
  mixed.replace(from, sizeof(cpu::BlobHeader), two, other, sizeof(cpu::BlobHeader));
  cpu::BlobHeader h;
  std::memcpy(&h, mixed.data() + from, sizeof h);
  h.size = one.size() - from;
  h.digest = cpu::digestOf(h);
  std::memcpy(mixed.data() + from, &h, sizeof h);
  auto session = load(mixed);
  ASSERT_FALSE(session);
  EXPECT_EQ(session.status().message(), "cpu: stored executable was made for another Program");
}

} // namespace
} // namespace candela::test
