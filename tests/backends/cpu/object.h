// A relocatable object of three small kernels, written here, so that what places it is tested
// without LLVM.
#pragma once

#include <cstdint>
#include <cstring>
#include <elf.h>
#include <string>
#include <vector>

namespace cpu::test {

using Block = std::vector<char>;

/// A relocatable object: sections one after the other, their table last.
class ObjectWriter {
public:
  ObjectWriter() { sections_.push_back({}); }

  uint16_t section(uint32_t type, uint64_t flags, const void* data, size_t size, uint64_t align,
                   uint32_t link = 0, uint32_t info = 0) {
    bytes_.resize((bytes_.size() + 15) & ~size_t(15));
    Elf64_Shdr s{};
    s.sh_type = type, s.sh_flags = flags, s.sh_offset = sizeof(Elf64_Ehdr) + bytes_.size(),
    s.sh_size = size;
    s.sh_addralign = align, s.sh_link = link, s.sh_info = info;
    sections_.push_back(s);
    append(bytes_, data, size);
    return static_cast<uint16_t>(sections_.size() - 1);
  }
  template <typename T>
  uint16_t section(uint32_t type, uint64_t flags, const std::vector<T>& data, uint64_t align,
                   uint32_t link = 0, uint32_t info = 0) {
    return section(type, flags, data.data(), data.size() * sizeof(T), align, link, info);
  }

  Block object() {
    bytes_.resize((bytes_.size() + 15) & ~size_t(15));
    Elf64_Ehdr h{};
    std::memcpy(h.e_ident, ELFMAG, SELFMAG);
    h.e_ident[EI_CLASS] = ELFCLASS64, h.e_ident[EI_DATA] = ELFDATA2LSB;
    h.e_type = ET_REL, h.e_machine = EM_X86_64, h.e_ehsize = sizeof h,
    h.e_shentsize = sizeof(Elf64_Shdr);
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

inline constexpr int64_t kConstant = 0x1122334455667788;

/// k0 stores kConstant + begin at args[0]; k1 calls k0; k2 calls k0 by its absolute address in the
/// constants.
inline Block sound() {
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
  ObjectWriter w;
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

} // namespace cpu::test
