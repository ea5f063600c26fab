#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "core/support/diagnostic.h"
#include "core/support/file.h"
#include "core/support/mapped_file.h"
#include "core/support/out_of_memory.h"
#include "core/support/pages.h"
#include "core/support/payload.h"
#include "core/support/text/nesting.h"
#include "core/support/threads.h"

namespace candela {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              fmt::format("candela_support_{}_{}", getpid(),
                          testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
  }
  fs::path folder_;
};

TEST_F(Files, WhatIsNoRegularFileIsRefusedByItsKind) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  fs::create_directory(folder_ / "folder");
  for (const auto& [name, kind] : {std::pair{path("pipe"), "a pipe"},
                                   {path("folder"), "a folder"},
                                   {std::string("/dev/zero"), "a device"}}) {
    const Status status = mapFile(name).status();
    EXPECT_EQ(status.code(), Code::io) << name;
    EXPECT_EQ(status.message(), fmt::format("{}: not a regular file but {}", name, kind));
  }
}

TEST_F(Files, AFileIsWholeOrNotThere) {
  write("a", "old");
  const auto names = [&] {
    return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
  };
  ptrdiff_t during = 0;
  EXPECT_TRUE(writeFile(path("a"), [&](std::FILE* file) {
    during = names();
    return std::fputs("new", file) >= 0;
  }));
  EXPECT_EQ(during, 1) << "what is being written has a name";
  EXPECT_EQ(names(), 1);
  EXPECT_FALSE(writeFile(path("a"), [](std::FILE*) { return errno = ENOSPC, false; }));
  EXPECT_FALSE(writeFile(path("b"), [](std::FILE*) { return errno = ENOSPC, false; }));
  EXPECT_EQ(names(), 1);
  EXPECT_EQ(mapFile(path("a"))->size(), 3u);
  EXPECT_FALSE(writeFile(path("no folder/b"), "x", 1));
}

TEST(Memory, ThatIsLeftIsBoundByTheMachine) {
  EXPECT_GT(availableMemory().bytes, 0u);
  const uint64_t machine = uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGESIZE));
  EXPECT_LE(availableMemory().bytes, machine * 16) << "swap is no larger";
  const Status status = zeroPages(machine * 16).status();
  EXPECT_EQ(status.code(), Code::out_of_memory);
  EXPECT_NE(status.message().find(" has "), std::string::npos) << status.message();
}

/// How a process ends whose exit status says whether `holds`: the limits that it sets end with it.
int endOfProcess(const std::function<bool()>& holds) {
  const pid_t pid = fork();
  if (pid == 0) _exit(holds() ? 0 : 1);
  int status = -1;
  waitpid(pid, &status, 0);
  return status;
}

bool limitAddresses(uint64_t bytes) {
  const rlimit limit{bytes, bytes};
  return setrlimit(RLIMIT_AS, &limit) == 0;
}

// A sanitizer takes terabytes of addresses for itself.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_OF_ADDRESSES(suite, name) TEST(suite, DISABLED_##name)
#else
#define TEST_OF_ADDRESSES(suite, name) TEST(suite, name)
#endif

TEST_OF_ADDRESSES(Memory, ThatIsLeftIsBoundByTheLimitOfAddresses) {
  EXPECT_EQ(endOfProcess([] {
              constexpr uint64_t kLimit = uint64_t(1) << 30;
              if (!limitAddresses(kLimit)) return false;
              const AvailableMemory left = availableMemory();
              const std::string message = zeroPages(kLimit).status().message();
              return left.bytes < kLimit &&
                     left.of == std::string("the limit of addresses (ulimit -v)") &&
                     message.find("ulimit -v) has ") != message.npos &&
                     zeroPages(kLimit / 8).isOk();
            }),
            0);
}

TEST(Memory, ThatIsNotThereIsThrownWhereNothingIsReturned) {
  try {
    orThrow(Result<int>(failure(Code::out_of_memory, "cannot allocate {} bytes", 7)));
    FAIL();
  } catch (const std::bad_alloc& error) {
    EXPECT_STREQ(error.what(), "cannot allocate 7 bytes");
  }
  EXPECT_EQ(orThrow(Result<int>(7)), 7);
  EXPECT_THROW(Bytes::copyOf("", uint64_t(1) << 60), std::bad_alloc);
}

TEST(Threads, RunAllAtTheSameTime) {
  std::atomic<size_t> there = 0;
  atTheSameTime(5, [&](size_t) {
    ++there;
    while (there < 5) std::this_thread::yield();
  });
  EXPECT_EQ(there, 5u);
  atTheSameTime(0, [](size_t) { FAIL(); });
}

TEST(Threads, ThrowWhatTheFirstThrewWhenAllAreDone) {
  for (const auto& call : {atTheSameTime, onThreads}) {
    std::atomic<size_t> done = 0;
    try {
      call(4, [&](size_t i) {
        ++done;
        if (i > 1) throw i;
      });
      FAIL();
    } catch (const size_t first) {
      EXPECT_EQ(first, 2u);
    }
    EXPECT_EQ(done, 4u);
  }
}

// Of threads that the system does not give: no end of the process, as of one that is not joined.
TEST_OF_ADDRESSES(Threads, ThatAreNotThere) {
  EXPECT_EQ(endOfProcess([] {
              // a thread's stack takes 8 MiB of it
              if (!limitAddresses(uint64_t(1) << 29)) return false;
              std::atomic<size_t> done = 0;
              std::mutex turn; // held: none ends before all are wanted
              std::unique_lock held(turn);
              onThreads(200, [&](size_t i) {
                if (i == 0) return held.unlock();
                const std::lock_guard mine(turn);
                ++done;
              });
              if (done != 199) return false;
              try {
                atTheSameTime(200, [&](size_t) { ++done; });
              } catch (const std::exception&) {
                return done == 199;
              }
              return false;
            }),
            0);
}

TEST(Nesting, OfJson) {
  EXPECT_EQ(text::jsonLevels(""), 0u);
  EXPECT_EQ(text::jsonLevels(R"({"a":[[1],{"b":2}],"c":"[[[[\"[["})"), 3u);
  EXPECT_EQ(text::jsonLevels(std::string(1000, '[')), 1000u);
  EXPECT_EQ(text::jsonLevels("]]]["), 1u);
}

TEST(Nesting, OfNamesInToml) {
  EXPECT_EQ(text::tomlLevels(""), 1u);
  EXPECT_EQ(text::tomlLevels("a.b.c = 1.5\n[d.e]\nx = [1.5, 2.5]\n"), 3u);
  EXPECT_EQ(text::tomlLevels(R"(a = "1.2.3.4.5 \" . . ." # . . . .)"), 1u);
  EXPECT_EQ(text::tomlLevels("a = '.....' # ....\nb = 1"), 1u);
  EXPECT_EQ(text::tomlLevels("a = \"\"\"\n.....\"\n\"\"\"\nb.c = '''\n.....'''"), 2u);
  EXPECT_EQ(text::tomlLevels("a = {b.c.d = 1}"), 3u);
  EXPECT_EQ(text::tomlLevels("a" + std::string(999, '.')), 1000u);
}

TEST(Elem, NamesRoundTrip) {
  for (int id = 1; id < kElemCount; ++id) {
    const Elem elem = static_cast<Elem>(id);
    EXPECT_EQ(parseElem(elemName(elem)), elem);
    EXPECT_EQ(elemFromOnnx(elemToOnnx(elem)), elem);
  }
  EXPECT_FALSE(parseElem("f31"));
  EXPECT_EQ(elemBytes(Elem::i4_, 3), 2u);
  EXPECT_TRUE(integerRange(Elem::i64_).highest == INT64_MAX &&
              integerRange(Elem::u8_).highest == 255);
}

TEST(Shapes, CountsRefuseWhatCannotBe) {
  EXPECT_EQ(elementCount(Shape{}), 1);
  EXPECT_EQ(elementCount(Shape{2, 0, 3}), 0);
  EXPECT_EQ(elementCount(Shape{-1}), std::nullopt);
  EXPECT_EQ(elementCount(Shape{int64_t(1) << 40, int64_t(1) << 40}), std::nullopt);
  EXPECT_EQ(denseStrides(Shape{2, 3, 4}), (std::vector<int64_t>{12, 4, 1}));
}

// The check values of tests/models/README.md.
TEST(Random, IsTheDocumentedSequence) {
  EXPECT_EQ(splitmix64(0), 0xE220A8397B1DCDAFu);
  const Tensor tensor = std::move(randomTensor(Elem::f32_, {4}, 1)).value();
  const uint32_t expected[] = {0x3E085168, 0x3E3AC1A8, 0xBF45E9D8, 0xBE0C60E8};
  EXPECT_EQ(std::memcmp(tensor.bytes.data(), expected, sizeof(expected)), 0);
}

TEST(Payload, FormsMaterializeAlike) {
  const auto splat = Payload::splat(Elem::i16_, 3, 0xfffe).materialize({3});
  EXPECT_EQ(splat->toInts(), (std::vector<int64_t>{-2, -2, -2}));
  for (const auto& [elem, bits] : {std::pair(Elem::f64_, 0x400921fb54442d18u),
                                   {Elem::u8_, 7u},
                                   {Elem::i4_, 5u},
                                   {Elem::i32_, 0u}}) {
    const auto many = Payload::splat(elem, 1001, bits).materialize({7, 143});
    ASSERT_TRUE(many.isOk());
    for (int64_t i = 0; i < 1001; ++i)
      EXPECT_EQ(loadElement(elem, many->bytes.data(), i), bits) << elemName(elem) << i;
  }
  const auto iota = Payload::iota(Elem::i32_, 4, 5, -3).materialize({2, 2});
  EXPECT_EQ(iota->toInts(), (std::vector<int64_t>{5, 2, -1, -4}));
  EXPECT_EQ(Payload::splat(Elem::i16_, 3, 0xfffe).hash(), Payload::data(*splat).hash());
  EXPECT_TRUE(Payload::data(*iota) == Payload::data(*iota));
  EXPECT_FALSE(Payload::splat(Elem::i16_, 3, 1) == Payload::splat(Elem::i16_, 3, 2));
}

TEST(Hash, IsSha256) {
  EXPECT_EQ(hashText(sha256("abc", 3)),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Status, KeepsItsContext) {
  const Status status = badModel("dim {} is not {}", 3, 4).context("model.onnx");
  EXPECT_EQ(status.message(), "model.onnx: dim 3 is not 4");
  EXPECT_EQ(status.code(), Code::bad_model);
  Diagnostics diagnostics;
  EXPECT_TRUE(diagnostics.status());
  diagnostics.error({"a.cdl", 3, 7}, "no");
  EXPECT_EQ(diagnostics.status().message(), "a.cdl:3:7: error: no");
}

TEST_F(Files, NpyRoundTrips) {
  for (Elem elem : {Elem::f32_, Elem::f64_, Elem::f16_, Elem::i8_, Elem::u8_, Elem::i32_,
                    Elem::i64_, Elem::bool_})
    for (const Shape& dims : {Shape{}, Shape{5}, Shape{2, 3}, Shape{0, 4}}) {
      const Tensor tensor = std::move(randomTensor(elem, dims, 7)).value();
      ASSERT_TRUE(writeNpy(path("a.npy"), tensor));
      const auto back = readNpy(path("a.npy"));
      ASSERT_TRUE(back) << back.status().message();
      EXPECT_EQ(back->typeText(), tensor.typeText());
      EXPECT_EQ(std::memcmp(back->bytes.data(), tensor.bytes.data(), tensor.sizeBytes()), 0);
    }
}

TEST_F(Files, NpyInFortranOrderIsTransposed) {
  std::string header = "{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3), }";
  header.append(117 - header.size(), ' ');
  header += '\n';
  const int32_t columns[] = {1, 4, 2, 5, 3, 6};
  write("f.npy", std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header +
                     std::string(reinterpret_cast<const char*>(columns), sizeof(columns)));
  const auto tensor = readNpy(path("f.npy"));
  ASSERT_TRUE(tensor) << tensor.status().message();
  EXPECT_EQ(tensor->toInts(), (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
}

TEST_F(Files, DamagedNpyIsRefusedByName) {
  ASSERT_TRUE(writeNpy(path("a.npy"), std::move(randomTensor(Elem::f32_, {3, 5}, 1)).value()));
  std::ifstream in(path("a.npy"), std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), {});
  for (size_t length = 0; length < good.size(); ++length) {
    write("t.npy", good.substr(0, length));
    const auto tensor = readNpy(path("t.npy"));
    ASSERT_FALSE(tensor) << "at length " << length;
    EXPECT_NE(tensor.status().message().find("t.npy"), std::string::npos);
  }
  for (size_t at = 0; at < 128; ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
      write("t.npy", bad);
      (void)readNpy(path("t.npy")).isOk(); // accepted or refused, never a crash
    }
}

TEST_F(Files, FullDiskKeepsTheOldFile) {
  write("old", "old");
  const Status status = writeFile(path("old"), [](std::FILE*) { return errno = ENOSPC, false; });
  EXPECT_EQ(status.code(), Code::io);
  EXPECT_NE(status.message().find("No space left"), std::string::npos);
  const auto old = mapFile(path("old"));
  ASSERT_TRUE(old);
  EXPECT_EQ(std::memcmp(old->data(), "old", 3), 0);
  EXPECT_FALSE(writeFile("/dev/full", "x", 1));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1)
      << "the temporary file is left behind";
}

TEST_F(Files, MappingNamesWhatIsWrong) {
  EXPECT_EQ(mapFile(path("absent")).status().code(), Code::not_found);
  EXPECT_EQ(mapFile(folder_.string()).status().code(), Code::io);
  write("empty", "");
  EXPECT_EQ(mapFile(path("empty"))->size(), 0u);
}

} // namespace
TEST_F(Files, SmallOnesAreCopiedAndLargeOnesWatched) {
  const std::string small(1000, 's'), large(kCopiedBytes + 1, 'l');
  write("small", small);
  write("large", large);
  FileWatch outer;
  FileWatch watch;
  const Bytes copied = mapFile(path("small")).orAbort();
  Bytes mapped = mapFile(path("large")).orAbort();
  EXPECT_FALSE(isMapped(copied));
  EXPECT_TRUE(isMapped(mapped));
  EXPECT_TRUE(isMapped(mapped.slice(kCopiedBytes, 1)));
  const FileWatch::Files files = watch.take();
  EXPECT_EQ(files.size(), 1u);
  EXPECT_EQ(outer.take().size(), 1u);
  EXPECT_TRUE(checkUnchanged(files));
  std::fstream(path("small"), std::ios::in | std::ios::out) << "other";
  EXPECT_EQ(std::memcmp(copied.data(), small.data(), small.size()), 0);
  std::fstream(path("large"), std::ios::in | std::ios::out) << "other";
  // clocks are coarse
  fs::last_write_time(path("large"), fs::last_write_time(path("large")) + std::chrono::seconds(1));
  const Status changed = checkUnchanged(files);
  EXPECT_EQ(changed.code(), Code::io);
  EXPECT_NE(changed.message().find(path("large") + ": it was changed"), std::string::npos)
      << changed.message();
  fs::resize_file(path("large"), 7);
  EXPECT_NE(checkUnchanged(files).message().find(fmt::format("{} bytes then, 7 now", large.size())),
            std::string::npos);
  mapped = {};
  EXPECT_TRUE(checkUnchanged(files)) << "nobody reads it any more";
}

TEST_F(Files, WhatIsCutOffEndsAProgramWithAMessage) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto readBehindTheEnd = [&](const std::string& name) {
    write(name, std::string(kCopiedBytes + 4096, 'l'));
    endOnCutFiles(3);
    const Bytes mapped = mapFile(path(name)).orAbort();
    fs::resize_file(path(name), 1);
    fs::remove_all(folder_); // of a process of its own, which ends before it is torn down
    volatile std::byte last = mapped.data()[mapped.size() - 1];
    (void)last;
  };
  EXPECT_EXIT(readBehindTheEnd("cut\x1b"), testing::ExitedWithCode(3),
              "error: .*cut.x1b: it was cut off while it was in use");
}

} // namespace candela
