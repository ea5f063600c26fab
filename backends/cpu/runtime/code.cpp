// ELF-64 relocatable objects for x86-64 as LLVM writes them (System V ABI, AMD64 supplement):
// allocated PROGBITS sections, one symbol table, RELA relocations that are relative to the place or
// absolute.
#include "code.hpp"

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <sys/mman.h>

namespace cpu {

namespace {

constexpr size_t kPage = 4096;

/// A table of `count` records at `offset`, when it lies inside of the object.
template <class T>
const T* table(const char* object, size_t size, uint64_t offset, uint64_t count) {
  if (offset > size || count > (size - offset) / sizeof(T)) return nullptr;
  if (reinterpret_cast<uintptr_t>(object + offset) % alignof(T)) return nullptr;
  return reinterpret_cast<const T*>(object + offset);
}

} // namespace

Code::~Code() {
  if (memory_) munmap(memory_, bytes_);
}

bool Code::fail(const std::string& text) {
  error_ = "object code: " + text;
  return false;
}

KernelFn Code::find(const std::string& name) const {
  const auto at = std::lower_bound(
      functions_.begin(), functions_.end(), name,
      [](const Symbol& symbol, const std::string& wanted) { return symbol.name < wanted; });
  if (at == functions_.end() || at->name != name) return nullptr;
  return reinterpret_cast<KernelFn>(memory_ + at->offset);
}

bool Code::place(const char* object, size_t size) {
  const auto* header = table<Elf64_Ehdr>(object, size, 0, 1);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_type != ET_REL ||
      header->e_machine != EM_X86_64 || header->e_shentsize != sizeof(Elf64_Shdr))
    return fail("no relocatable ELF object for x86-64");
  const auto* sections = table<Elf64_Shdr>(object, size, header->e_shoff, header->e_shnum);
  if (!sections) return fail("its section table leaves the file");

  // Where each section comes to lie. Constants and code share one mapping, so that relative
  // addresses reach.
  const auto count = static_cast<size_t>(header->e_shnum);
  std::vector<uint64_t> places(count, UINT64_MAX);
  uint64_t end = 0, held = 0;
  const Elf64_Shdr* symbolTable = nullptr;
  for (size_t i = 0; i < count; ++i) {
    const Elf64_Shdr& s = sections[i];
    if (s.sh_type == SHT_SYMTAB) symbolTable = &s;
    if (!(s.sh_flags & SHF_ALLOC) || s.sh_type == SHT_NOBITS) continue;
    if (!table<char>(object, size, s.sh_offset, s.sh_size))
      return fail("a section leaves the file");
    held += s.sh_size; // each at most the file's
    if (held > size) return fail("its sections overlap");
    const uint64_t align = s.sh_addralign ? s.sh_addralign : 1;
    if (align > kPage || (align & (align - 1)))
      return fail("an alignment of " + std::to_string(align) + " bytes");
    end = (end + align - 1) & ~(align - 1);
    places[i] = end;
    end += s.sh_size;
  }
  if (!symbolTable || symbolTable->sh_link >= count) return fail("no symbol table");
  bytes_ = (end + kPage) & ~(kPage - 1);
  void* mapped = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return fail("no " + std::to_string(bytes_) + " bytes of memory for it");
  memory_ = static_cast<char*>(mapped);
  for (size_t i = 0; i < count; ++i)
    if (places[i] != UINT64_MAX)
      std::memcpy(memory_ + places[i], object + sections[i].sh_offset, sections[i].sh_size);

  const uint64_t symbolCount = symbolTable->sh_size / sizeof(Elf64_Sym);
  const auto* symbols = table<Elf64_Sym>(object, size, symbolTable->sh_offset, symbolCount);
  const Elf64_Shdr& names = sections[symbolTable->sh_link];
  const char* text = table<char>(object, size, names.sh_offset, names.sh_size);
  if (!symbols || !text || names.sh_size == 0 || text[names.sh_size - 1] != 0)
    return fail("its symbols leave the file");
  const auto placeOf = [&](const Elf64_Sym& symbol, uint64_t& at) {
    if (symbol.st_shndx >= count || places[symbol.st_shndx] == UINT64_MAX) return false;
    if (symbol.st_value > sections[symbol.st_shndx].sh_size) return false;
    at = places[symbol.st_shndx] + symbol.st_value;
    return true;
  };

  for (size_t i = 0; i < count; ++i) {
    const Elf64_Shdr& s = sections[i];
    if (s.sh_type == SHT_REL) return fail("relocations without addends");
    if (s.sh_type != SHT_RELA || s.sh_info >= count || places[s.sh_info] == UINT64_MAX) continue;
    const uint64_t relocations = s.sh_size / sizeof(Elf64_Rela);
    const auto* rela = table<Elf64_Rela>(object, size, s.sh_offset, relocations);
    if (!rela) return fail("its relocations leave the file");
    for (uint64_t r = 0; r < relocations; ++r) {
      const uint64_t index = ELF64_R_SYM(rela[r].r_info), type = ELF64_R_TYPE(rela[r].r_info);
      uint64_t target = 0;
      if (index >= symbolCount || !placeOf(symbols[index], target)) {
        const bool named = index < symbolCount && symbols[index].st_name < names.sh_size;
        return fail(std::string("it refers to '") + (named ? text + symbols[index].st_name : "?") +
                    "', which is not part of it");
      }
      const uint64_t width = type == R_X86_64_64 || type == R_X86_64_PC64 ? 8 : 4;
      if (rela[r].r_offset > sections[s.sh_info].sh_size ||
          sections[s.sh_info].sh_size - rela[r].r_offset < width)
        return fail("a relocation leaves its section");
      char* where = memory_ + places[s.sh_info] + rela[r].r_offset;
      // Modulo 2^64: an addend may be anything.
      const uint64_t absolute =
          reinterpret_cast<uintptr_t>(memory_ + target) + static_cast<uint64_t>(rela[r].r_addend);
      const uint64_t relative = absolute - reinterpret_cast<uintptr_t>(where);
      if (type == R_X86_64_64 || type == R_X86_64_PC64) {
        std::memcpy(where, type == R_X86_64_64 ? &absolute : &relative, 8);
      } else if (type == R_X86_64_PC32 || type == R_X86_64_PLT32) {
        const auto narrow = static_cast<int32_t>(relative);
        if (static_cast<uint64_t>(int64_t{narrow}) != relative)
          return fail("a relative address beyond 32 bits");
        std::memcpy(where, &narrow, 4);
      } else {
        return fail("a relocation of type " + std::to_string(type));
      }
    }
  }

  for (uint64_t i = 0; i < symbolCount; ++i) {
    uint64_t at = 0;
    if (ELF64_ST_TYPE(symbols[i].st_info) != STT_FUNC || symbols[i].st_name >= names.sh_size ||
        !placeOf(symbols[i], at))
      continue;
    const Elf64_Shdr& home = sections[symbols[i].st_shndx];
    if (!(home.sh_flags & SHF_EXECINSTR) || symbols[i].st_value == home.sh_size)
      return fail("a function without code");
    functions_.push_back({text + symbols[i].st_name, at});
  }
  std::sort(functions_.begin(), functions_.end(),
            [](const Symbol& a, const Symbol& b) { return a.name < b.name; });
  if (mprotect(memory_, bytes_, PROT_READ | PROT_EXEC) != 0)
    return fail("the system does not let it be executed");
  return true;
}

} // namespace cpu
