// The placer of object code: what it makes of a whole object, and that a damaged one is an error and never a fault.
// Needs nothing of LLVM: the object is written here, so that this runs under the sanitizers.
#include "backends/cpu/runtime/code.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <elf.h>
#include <memory>

#include "tests/fuzz/random_program.h"

namespace cpu {
namespace {

using candela::test::Random;
using Block = std::vector<char>;

/// A relocatable object: sections one after the other, their table last.
class Writer {
public:
  Writer() { sections_.push_back({}); }

  uint16_t section(uint32_t type, uint64_t flags, const void* data, size_t size, uint64_t align, uint32_t link = 0,
                   uint32_t info = 0) {
    bytes_.resize((bytes_.size() + 15) & ~size_t(15));
    Elf64_Shdr s{};
    s.sh_type = type, s.sh_flags = flags, s.sh_offset = sizeof(Elf64_Ehdr) + bytes_.size(), s.sh_size = size;
    s.sh_addralign = align, s.sh_link = link, s.sh_info = info;
    sections_.push_back(s);
    append(bytes_, data, size);
    return static_cast<uint16_t>(sections_.size() - 1);
  }
  template <typename T>
  uint16_t section(uint32_t type, uint64_t flags, const std::vector<T>& data, uint64_t align, uint32_t link = 0,
                   uint32_t info = 0) {
    return section(type, flags, data.data(), data.size() * sizeof(T), align, link, info);
  }

  Block object() {
    bytes_.resize((bytes_.size() + 15) & ~size_t(15));
    Elf64_Ehdr h{};
    std::memcpy(h.e_ident, ELFMAG, SELFMAG);
    h.e_ident[EI_CLASS] = ELFCLASS64, h.e_ident[EI_DATA] = ELFDATA2LSB;
    h.e_type = ET_REL, h.e_machine = EM_X86_64, h.e_ehsize = sizeof h, h.e_shentsize = sizeof(Elf64_Shdr);
    h.e_shoff = sizeof h + bytes_.size(), h.e_shnum = static_cast<uint16_t>(sections_.size());
    Block out;
    append(out, &h, sizeof h);
    append(out, bytes_.data(), bytes_.size());
    append(out, sections_.data(), sections_.size() * sizeof(Elf64_Shdr));
    return out;
  }

private:
  static void append(Block& to, const void* data, size_t size) {
    const size_t at = to.size();
    to.resize(at + size);
    std::memcpy(to.data() + at, data, size);
  }
  Block bytes_;
  std::vector<Elf64_Shdr> sections_;
};

constexpr int64_t kConstant = 0x1122334455667788;

/// k0 stores kConstant + begin at args[0]; k1 calls k0; k2 calls k0 by its absolute address in the constants.
Block sound() {
  const std::vector<uint8_t> code = {
      0x48, 0x8b, 0x07,                   // k0: mov rax, [rdi]
      0x48, 0x8b, 0x0d, 0, 0, 0,    0,    //     mov rcx, [rip + constant]
      0x48, 0x01, 0xf1,                   //     add rcx, rsi
      0x48, 0x89, 0x08,                   //     mov [rax], rcx
      0xc3,                               //     ret
      0xe8, 0,    0,    0, 0, 0xc3,       // k1: call k0, ret
      0xff, 0x15, 0,    0, 0, 0,    0xc3, // k2: call [rip + address], ret
  };
  const std::vector<int64_t> constants = {kConstant, 0, 0};
  const std::string names("\0k0\0k1\0k2\0", 10);
  Writer w;
  const uint16_t text = w.section(SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, code, 16);
  const uint16_t data = w.section(SHT_PROGBITS, SHF_ALLOC, constants, 8);
  const uint16_t strings = w.section(SHT_STRTAB, 0, names.data(), names.size(), 1);
  std::vector<Elf64_Sym> symbols(5);
  const auto symbol = [&](size_t i, uint32_t name, uint8_t type, uint16_t home, uint64_t value) {
    symbols[i].st_name = name, symbols[i].st_info = ELF64_ST_INFO(STB_GLOBAL, type);
    symbols[i].st_shndx = home, symbols[i].st_value = value;
  };
  symbol(1, 1, STT_FUNC, text, 0);
  symbol(2, 4, STT_FUNC, text, 17);
  symbol(3, 7, STT_FUNC, text, 23);
  symbol(4, 0, STT_SECTION, data, 0);
  const uint16_t table = w.section(SHT_SYMTAB, 0, symbols, 8, strings, 1);
  const std::vector<Elf64_Rela> ofText = {{6, ELF64_R_INFO(4, R_X86_64_PC32), -4},
                                          {18, ELF64_R_INFO(1, R_X86_64_PLT32), -4},
                                          {25, ELF64_R_INFO(4, R_X86_64_PC32), 8 - 4}};
  const std::vector<Elf64_Rela> ofData = {{8, ELF64_R_INFO(1, R_X86_64_64), 0},
                                          {16, ELF64_R_INFO(1, R_X86_64_PC64), 0}};
  w.section(SHT_RELA, SHF_INFO_LINK, ofText, 8, table, text);
  w.section(SHT_RELA, SHF_INFO_LINK, ofData, 8, table, data);
  return w.object();
}

/// Places exactly these bytes: a sanitizer sees the first one beyond them.
struct Placed {
  Code code;
  bool ok;
  explicit Placed(const Block& object) {
    const auto exact = std::make_unique<char[]>(object.size());
    if (!object.empty()) std::memcpy(exact.get(), object.data(), object.size());
    ok = code.place(exact.get(), object.size());
    if (ok == !code.error().empty()) ADD_FAILURE() << "ok " << ok << " with error '" << code.error() << "'";
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

TEST(CpuCode, AnObjectCutAnywhereIsAnError) {
  const Block whole = sound();
  for (size_t size = 0; size < whole.size(); ++size) {
    const Placed placed(Block(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
    EXPECT_FALSE(placed.ok) << size << " of " << whole.size() << " bytes"; // the section table is last
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
      const auto at = static_cast<size_t>(random.in(0, static_cast<int64_t>((whole.size() - 8) / 2))) * 2;
      const uint64_t number = random.chance(70)   ? random.of(kNumbers)
                              : random.chance(50) ? whole.size() - static_cast<uint64_t>(random.in(0, 64))
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
  EXPECT_EQ(errorOf([](auto& h, auto*, auto&) { h.e_shoff += 64; }), "object code: its section table leaves the file");
  EXPECT_EQ(errorOf([](auto&, auto* s, auto&) { s[1].sh_size = 1 << 20; }), "object code: a section leaves the file");
  EXPECT_EQ(errorOf([](auto&, auto* s, auto& o) {
              s[1].sh_offset = s[2].sh_offset = 0, s[1].sh_size = s[2].sh_size = o.size();
            }),
            "object code: its sections overlap");
  EXPECT_EQ(errorOf([](auto&, auto* s, auto&) { s[1].sh_addralign = 3; }), "object code: an alignment of 3 bytes");
  EXPECT_EQ(errorOf([](auto&, auto* s, auto&) { s[4].sh_type = SHT_NOTE; }), "object code: no symbol table");
  const auto relocation = [&](size_t i, uint64_t offset, uint64_t info, int64_t addend) {
    return errorOf([&](auto&, auto* s, auto& o) {
      reinterpret_cast<Elf64_Rela*>(o.data() + s[5].sh_offset)[i] = {offset, info, addend};
    });
  };
  EXPECT_EQ(relocation(0, 27, ELF64_R_INFO(4, R_X86_64_PC32), 0), "object code: a relocation leaves its section");
  EXPECT_EQ(relocation(0, 6, ELF64_R_INFO(4, R_X86_64_PC32), INT64_MAX),
            "object code: a relative address beyond 32 bits");
  EXPECT_EQ(relocation(0, 6, ELF64_R_INFO(4, R_X86_64_TPOFF64), 0), "object code: a relocation of type 18");
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
