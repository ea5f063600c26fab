// Damaged images and texts are refused, or are Programs like any other: never a crash, never a read
// out of bounds. Images lie in heap blocks of exactly their size, so that the address sanitizer
// sees the first byte too far.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "core/compiler/program/image.h"
#include "core/compiler/program/text.h"
#include "tests/fuzz/random_program.h"

namespace candela::test {
namespace {

constexpr uint64_t kExtremes[] = {0,
                                  1,
                                  2,
                                  7,
                                  8,
                                  0x7f,
                                  0xff,
                                  0x7fff,
                                  0xffff,
                                  0x7fffffff,
                                  0x80000000u,
                                  0xffffffffu,
                                  0xfffffffe,
                                  UINT64_MAX,
                                  INT64_MAX,
                                  1ull << 63,
                                  1ull << 40,
                                  (1ull << 40) + 1,
                                  1ull << 62,
                                  UINT64_MAX - 7,
                                  0xaaaaaaaaaaaaaaaa};

std::vector<std::byte> copyOf(const Bytes& bytes) {
  return {bytes.data(), bytes.data() + bytes.size()};
}

/// Changes one thing. What is left of the size field and the hash may agree or not: see the caller.
void mutate(std::vector<std::byte>& image, Random& rng) {
  const auto place = [&](size_t size) {
    return static_cast<size_t>(rng.in(0, static_cast<int64_t>((image.size() - size) / size))) *
           size;
  };
  switch (rng.in(0, 4)) {
  case 0: image[place(1)] ^= std::byte(1 << rng.in(0, 7)); break;
  case 1:
    image.resize(static_cast<size_t>(rng.in(0, static_cast<int64_t>(image.size()) - 1)));
    break;
  case 2: {
    const auto value = static_cast<uint32_t>(rng.of(kExtremes));
    std::memcpy(image.data() + place(4), &value, 4);
    break;
  }
  case 3: {
    const uint64_t value = rng.of(kExtremes);
    std::memcpy(image.data() + place(8), &value, 8);
    break;
  }
  default: { // one record over another: every index is plausible, but in the wrong place
    const size_t from = place(8), to = place(8);
    std::memmove(image.data() + to, image.data() + from, 8);
  }
  }
}

/// Makes size and hash agree again, so that the damage reaches what lies behind them.
void mend(std::vector<std::byte>& image) {
  if (image.size() < sizeof(cdl_image_t)) return;
  cdl_image_t header;
  std::memcpy(&header, image.data(), sizeof header);
  header.size = image.size();
  std::memset(header.hash, 0, sizeof header.hash);
  std::memcpy(image.data(), &header, sizeof header);
  const Hash hash = sha256(image.data(), image.size());
  std::memcpy(image.data() + offsetof(cdl_image_t, hash), hash.data(), hash.size());
}

/// In a block that ends where the image ends.
Bytes exactBlock(const std::vector<std::byte>& image) {
  void* block = std::malloc(image.size());
  if (!image.empty()) std::memcpy(block, image.data(), image.size());
  return Bytes::wrap(block, image.size(),
                     {block, [](const void* p) { std::free(const_cast<void*>(p)); }});
}

/// What was accepted can be written, read, printed and parsed.
void expectWhole(const program::Program& program) {
  const Status status = program::verify(program);
  ASSERT_TRUE(status) << status.message();
  const Bytes image = program::toImage(program);
  const auto again = program::fromImage(image, nullptr);
  ASSERT_TRUE(again) << again.status().message();
  const auto text = program::print(program);
  ASSERT_TRUE(text) << text.status().message();
}

TEST(ProgramMutation, Images) {
  int accepted = 0, refused = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    RandomOptions options;
    options.instrs = 6;
    const Bytes image = program::toImage(randomProgram(seed + 7000, options));
    Random rng(seed);
    for (int i = 0; i < 400; ++i) {
      SCOPED_TRACE(fmt::format("seed {} mutation {}", seed, i));
      std::vector<std::byte> damaged = copyOf(image);
      for (int64_t count = rng.in(1, 2); count > 0 && damaged.size() > 8; --count)
        mutate(damaged, rng);
      if (rng.chance(85)) mend(damaged);
      const auto read = program::fromImage(exactBlock(damaged), nullptr);
      ++(read ? accepted : refused);
      if (read)
        expectWhole(*read);
      else
        EXPECT_FALSE(read.status().message().empty());
    }
  }
  // Both happen: damage in padding of names or values is no damage, damage in indices is.
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(refused, 10000);
}

TEST(ProgramMutation, EveryTruncation) {
  RandomOptions options;
  options.instrs = 3;
  const std::vector<std::byte> whole = copyOf(program::toImage(randomProgram(7, options)));
  for (size_t size = 0; size < whole.size(); ++size) {
    std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    if (size % 2) mend(cut);
    ASSERT_FALSE(program::fromImage(exactBlock(cut), nullptr)) << size;
  }
}

TEST(ProgramMutation, UnalignedImagesAreRead) {
  const Bytes image = program::toImage(randomProgram(3));
  std::vector<std::byte> shifted(image.size() + 1);
  std::memcpy(shifted.data() + 1, image.data(), image.size());
  EXPECT_TRUE(program::fromImage(Bytes::wrap(shifted.data() + 1, image.size(), nullptr), nullptr));
}

/// Instructions that all name the same views would grow when read.
TEST(ProgramMutation, SharedViewsAreRefused) {
  program::Program program;
  program::Buffer buffer;
  buffer.bytes = 4;
  const uint32_t x = program.addBuffer(buffer), y = program.addBuffer(buffer);
  program::Instr copy;
  copy.kind = CDL_KIND_COPY;
  copy.inputs = {program::denseView(x, Elem::f32_, {1})};
  copy.outputs = {program::denseView(y, Elem::f32_, {1})};
  program.instrs = {copy, copy};
  std::vector<std::byte> image = copyOf(program::toImage(program));
  cdl_image_t header;
  std::memcpy(&header, image.data(), sizeof header);
  cdl_instr_t first;
  std::memcpy(&first, image.data() + header.instrs.offset + sizeof first, sizeof first);
  std::memcpy(image.data() + header.instrs.offset + 2 * sizeof first, &first, sizeof first);
  header.views.count = 3; // the second instruction's own views are gone
  std::memcpy(image.data(), &header, sizeof header);
  mend(image);
  const auto read = program::fromImage(exactBlock(image), nullptr);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.status().message(), "image: instruction 2: shares views: 4 used of 2");
}

std::string mutateText(std::string text, Random& rng) {
  const auto place = [&] {
    return static_cast<size_t>(rng.in(0, static_cast<int64_t>(text.size()) - 1));
  };
  static constexpr std::string_view kPieces[] = {"{",
                                                 "}",
                                                 "[",
                                                 "]",
                                                 "(",
                                                 ")",
                                                 "\"",
                                                 "%",
                                                 "@",
                                                 ",",
                                                 "//",
                                                 "0x",
                                                 "-1",
                                                 "1e9",
                                                 "-inf",
                                                 "nan",
                                                 "for 3 {",
                                                 "\n",
                                                 "i0",
                                                 "expr{",
                                                 "9223372036854775807",
                                                 "99999999999999999999",
                                                 "4294967295",
                                                 "group dim 1 bands 2 {",
                                                 "%x[1]:f32",
                                                 " = "};
  switch (rng.in(0, 4)) {
  case 0: text[place()] = static_cast<char>(rng.next()); break;
  case 1: text.erase(place(), static_cast<size_t>(rng.in(1, 20))); break;
  case 2: text.insert(place(), rng.of(kPieces)); break;
  case 3: { // a piece of it elsewhere
    const std::string piece = text.substr(place(), static_cast<size_t>(rng.in(1, 30)));
    text.insert(place(), piece);
    break;
  }
  default: { // another number
    const size_t digit = text.find_first_of("0123456789", place());
    if (digit != std::string::npos)
      text.replace(digit, 1,
                   fmt::format("{}", rng.chance(50) ? rng.of(kExtremes)
                                                    : static_cast<uint64_t>(rng.in(0, 9))));
  }
  }
  return text;
}

TEST(ProgramMutation, Texts) {
  int accepted = 0, refused = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    RandomOptions options;
    options.instrs = 6;
    const auto text = program::print(randomProgram(seed + 9000, options));
    ASSERT_TRUE(text);
    Random rng(seed);
    for (int i = 0; i < 150; ++i) {
      SCOPED_TRACE(fmt::format("seed {} mutation {}", seed, i));
      std::string damaged = *text;
      for (int64_t count = rng.in(1, 3); count > 0 && !damaged.empty(); --count)
        damaged = mutateText(std::move(damaged), rng);
      Diagnostics diagnostics;
      const auto parsed = program::parse(damaged, "fuzz.cdl", diagnostics);
      ++(parsed ? accepted : refused);
      EXPECT_EQ(parsed.isOk(), diagnostics.empty());
      if (parsed) expectWhole(*parsed);
    }
  }
  EXPECT_GT(accepted, 250);
  EXPECT_GT(refused, 4000);
}

} // namespace
} // namespace candela::test
