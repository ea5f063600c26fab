// The placer of object code: what it makes of a whole object, and that a damaged one is an error
// and never a fault. Needs nothing of LLVM, so that this runs under the sanitizers.
#include "backends/cpu/runtime/code.hpp"
#include "backends/cpu/runtime/objects.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "tests/backends/cpu/object.h"
#include "tests/fuzz/random_program.h"

namespace cpu {
namespace {

using candela::test::Random;
using test::Block;
using test::kConstant;
using test::sound;
/// Places exactly these bytes: a sanitizer sees the first one beyond them.
struct Placed {
  Code code;
  bool ok;
  explicit Placed(const Block& object) {
    const auto exact = std::make_unique<char[]>(object.size());
    if (!object.empty()) std::memcpy(exact.get(), object.data(), object.size());
    ok = code.place(exact.get(), object.size());
    if (ok == !code.error().empty())
      ADD_FAILURE() << "ok " << ok << " with error '" << code.error() << "'";
    for (const char* name : {"k0", "k1", "k2", "k3", ""}) (void)code.find(name);
  }
};

TEST(CpuCode, RunsAfterEveryKindOfRelocation) {
  const Placed placed(sound());
  ASSERT_TRUE(placed.ok) << placed.code.error();
  for (const char* name : {"k0", "k1", "k2"}) {
    const KernelFn kernel = placed.code.find(name);
    ASSERT_NE(kernel, nullptr) << name;
    int64_t result = 0;
    void* args[] = {&result};
    kernel(args, 5, 6);
    EXPECT_EQ(result, kConstant + 5) << name;
  }
  EXPECT_EQ(placed.code.find("k3"), nullptr);
}

std::vector<std::pair<const char*, uint64_t>> unpacked(const AlignedBytes& bytes, uint64_t size) {
  std::vector<std::pair<const char*, uint64_t>> objects;
  const auto exact = std::make_unique<char[]>(size);
  if (size) std::memcpy(exact.get(), bytes.data(), size);
  if (!unpack(exact.get(), size, objects)) objects.clear();
  for (auto& [object, length] : objects) object = bytes.data() + (object - exact.get());
  return objects;
}

TEST(CpuObjects, ComeBackAsTheyWerePacked) {
  const std::vector<std::vector<char>> given{{1, 2, 3}, {}, std::vector<char>(100, 4)};
  const AlignedBytes bytes = packed(given);
  const auto objects = unpacked(bytes, bytes.size());
  ASSERT_EQ(objects.size(), given.size());
  for (size_t i = 0; i < given.size(); ++i) {
    const auto& [object, length] = objects[i];
    EXPECT_EQ(std::vector<char>(object, object + length), given[i]) << i;
    EXPECT_EQ((object - bytes.data()) % 64, 0) << i;
  }
  EXPECT_TRUE(unpacked(packed({}), 64).empty());
}

TEST(CpuObjects, ATableThatLeavesItsBytesIsRefused) {
  const AlignedBytes bytes = packed({std::vector<char>(200, 1), std::vector<char>(60, 2)});
  for (uint64_t size = 0; size < 64 + 256 + 60; ++size)
    EXPECT_TRUE(unpacked(bytes, size).empty()) << size;
  for (int entry = 0; entry < 3; ++entry)
    for (const uint64_t wrong : {uint64_t(1) << 40, UINT64_MAX, UINT64_MAX - 62}) {
      AlignedBytes forged = packed({std::vector<char>(200, 1), std::vector<char>(60, 2)});
      std::memcpy(forged.data() + 8 * entry, &wrong, sizeof wrong);
      EXPECT_TRUE(unpacked(forged, forged.size()).empty()) << entry << " is " << wrong;
    }
}

TEST(CpuCode, AnObjectCutAnywhereIsAnError) {
  const Block whole = sound();
  for (size_t size = 0; size < whole.size(); ++size) {
    const Placed placed(Block(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
    // the section table is last
    EXPECT_FALSE(placed.ok) << size << " of " << whole.size() << " bytes";
  }
}

TEST(CpuCode, AFlippedBitIsNoFault) {
  const Block whole = sound();
  int refused = 0, tried = 0;
  for (size_t at = 0; at < whole.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      Block damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      refused += !Placed(damaged).ok;
      ++tried;
    }
  EXPECT_GT(refused, tried / 10);
  EXPECT_LT(refused, tried);
}

TEST(CpuCode, AFieldWithAnyNumberIsNoFault) {
  const Block whole = sound();
  Random random(7);
  static constexpr uint64_t kNumbers[] = {0,
                                          1,
                                          7,
                                          8,
                                          63,
                                          64,
                                          0xff,
                                          0x100,
                                          0xffff,
                                          0x7fffffff,
                                          0x80000000,
                                          0xffffffff,
                                          INT64_MAX,
                                          uint64_t(1) << 63,
                                          UINT64_MAX,
                                          UINT64_MAX - 7,
                                          UINT64_MAX - 63};
  for (int i = 0; i < 20000; ++i) {
    Block damaged = whole;
    for (int64_t fields = random.in(1, 3); fields > 0; --fields) {
      const size_t width = size_t(1) << random.in(1, 3);
      const auto at =
          static_cast<size_t>(random.in(0, static_cast<int64_t>((whole.size() - 8) / 2))) * 2;
      const uint64_t number = random.chance(70) ? random.of(kNumbers)
                              : random.chance(50)
                                  ? whole.size() - static_cast<uint64_t>(random.in(0, 64))
                                  : random.next();
      std::memcpy(damaged.data() + at / width * width, &number, width);
    }
    Placed placed(damaged);
  }
}

TEST(CpuCode, SaysWhatIsWrong) {
  const auto errorOf = [](const std::function<void(Elf64_Ehdr&, Elf64_Shdr*, Block&)>& damage) {
    Block object = sound();
    auto& header = *reinterpret_cast<Elf64_Ehdr*>(object.data());
    damage(header, reinterpret_cast<Elf64_Shdr*>(object.data() + header.e_shoff), object);
    return Placed(object).code.error();
  };
  EXPECT_EQ(errorOf([](auto& h, auto*, auto&) { h.e_machine = EM_386; }),
            "object code: no relocatable ELF object for x86-64");
  EXPECT_EQ(errorOf([](auto& h, auto*, auto&) { h.e_shoff += 64; }),
            "object code: its section table leaves the file");
  EXPECT_EQ(errorOf([](auto&, auto* s, auto&) { s[1].sh_size = 1 << 20; }),
            "object code: a section leaves the file");
  EXPECT_EQ(errorOf([](auto&, auto* s, auto& o) {
              s[1].sh_offset = s[2].sh_offset = 0, s[1].sh_size = s[2].sh_size = o.size();
            }),
            "object code: its sections overlap");
  EXPECT_EQ(errorOf([](auto&, auto* s, auto&) { s[1].sh_addralign = 3; }),
            "object code: an alignment of 3 bytes");
  EXPECT_EQ(errorOf([](auto&, auto* s, auto&) { s[4].sh_type = SHT_NOTE; }),
            "object code: no symbol table");
  const auto relocation = [&](size_t i, uint64_t offset, uint64_t info, int64_t addend) {
    return errorOf([&](auto&, auto* s, auto& o) {
      reinterpret_cast<Elf64_Rela*>(o.data() + s[5].sh_offset)[i] = {offset, info, addend};
    });
  };
  EXPECT_EQ(relocation(0, 27, ELF64_R_INFO(4, R_X86_64_PC32), 0),
            "object code: a relocation leaves its section");
  EXPECT_EQ(relocation(0, 6, ELF64_R_INFO(4, R_X86_64_PC32), INT64_MAX),
            "object code: a relative address beyond 32 bits");
  EXPECT_EQ(relocation(0, 6, ELF64_R_INFO(4, R_X86_64_TPOFF64), 0),
            "object code: a relocation of type 18");
  EXPECT_EQ(relocation(0, 6, ELF64_R_INFO(0, R_X86_64_PC32), 0),
            "object code: it refers to '', which is not part of it");
  EXPECT_EQ(relocation(0, 6, ELF64_R_INFO(99, R_X86_64_PC32), 0),
            "object code: it refers to '?', which is not part of it");
  EXPECT_EQ(errorOf([](auto&, auto* s, auto&) { s[1].sh_flags &= ~uint64_t(SHF_EXECINSTR); }),
            "object code: a function without code");
}

TEST(CpuCode, AnObjectOutOfPlaceIsAnError) {
  const Block whole = sound();
  std::vector<uint64_t> room(whole.size() / 8 + 2);
  char* at = reinterpret_cast<char*>(room.data()) + 1;
  std::memcpy(at, whole.data(), whole.size());
  Code code;
  EXPECT_FALSE(code.place(at, whole.size()));
}

} // namespace
} // namespace cpu
