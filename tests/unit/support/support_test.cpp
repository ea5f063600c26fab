#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/support/diagnostic.h"
#include "core/support/file.h"
#include "core/support/payload.h"

namespace candela {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / fmt::format("candela_support_{}_{}", getpid(),
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

TEST(Elem, NamesRoundTrip) {
  for (int id = 1; id < kElemCount; ++id) {
    const Elem elem = static_cast<Elem>(id);
    EXPECT_EQ(parseElem(elemName(elem)), elem);
    EXPECT_EQ(elemFromOnnx(elemToOnnx(elem)), elem);
  }
  EXPECT_FALSE(parseElem("f31"));
  EXPECT_EQ(elemBytes(Elem::i4_, 3), 2u);
  EXPECT_TRUE(integerRange(Elem::i64_).highest == INT64_MAX && integerRange(Elem::u8_).highest == 255);
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
  for (const auto& [elem, bits] :
       {std::pair(Elem::f64_, 0x400921fb54442d18u), {Elem::u8_, 7u}, {Elem::i4_, 5u}, {Elem::i32_, 0u}}) {
    const auto many = Payload::splat(elem, 1001, bits).materialize({7, 143});
    ASSERT_TRUE(many.isOk());
    for (int64_t i = 0; i < 1001; ++i) EXPECT_EQ(loadElement(elem, many->bytes.data(), i), bits) << elemName(elem) << i;
  }
  const auto iota = Payload::iota(Elem::i32_, 4, 5, -3).materialize({2, 2});
  EXPECT_EQ(iota->toInts(), (std::vector<int64_t>{5, 2, -1, -4}));
  EXPECT_EQ(Payload::splat(Elem::i16_, 3, 0xfffe).hash(), Payload::data(*splat).hash());
  EXPECT_TRUE(Payload::data(*iota) == Payload::data(*iota));
  EXPECT_FALSE(Payload::splat(Elem::i16_, 3, 1) == Payload::splat(Elem::i16_, 3, 2));
}

TEST(Hash, IsSha256) {
  EXPECT_EQ(hashText(sha256("abc", 3)), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
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
  for (Elem elem : {Elem::f32_, Elem::f64_, Elem::f16_, Elem::i8_, Elem::u8_, Elem::i32_, Elem::i64_, Elem::bool_})
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
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1) << "the temporary file is left behind";
}

TEST_F(Files, MappingNamesWhatIsWrong) {
  EXPECT_EQ(mapFile(path("absent")).status().code(), Code::not_found);
  EXPECT_EQ(mapFile(folder_.string()).status().code(), Code::io);
  write("empty", "");
  EXPECT_EQ(mapFile(path("empty"))->size(), 0u);
}

} // namespace
} // namespace candela
