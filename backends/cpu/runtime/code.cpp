// ELF-64 relocatable objects for x86-64 as LLVM writes them (System V ABI, AMD64 supplement):
// allocated PROGBITS sections, one symbol table, RELA relocations that are relative to the place or
// absolute.
#include "code.hpp"

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <optional>
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

namespace {

/// A relocatable object, whose tables lie within the file, and where its sections go in memory.
struct Object {
  static constexpr uint64_t kNowhere = UINT64_MAX;
  const char* bytes;
  size_t size;
  const Elf64_Shdr* sections = nullptr;
  size_t count = 0;               // of sections
  std::vector<uint64_t> places{}; // of sections
  uint64_t end = 0;               // of the last one
  const Elf64_Shdr* symbolTable = nullptr;
  const Elf64_Sym* symbols = nullptr;
  uint64_t symbolCount = 0;
  const char* names = nullptr;
  uint64_t nameBytes = 0;

  // Each says what is wrong; empty: nothing.
  std::string readHeader();
  std::string placeSections();
  std::string readSymbols();

  /// Where a symbol goes; nullopt: nowhere.
  std::optional<uint64_t> placeOf(const Elf64_Sym& symbol) const {
    if (symbol.st_shndx >= count || places[symbol.st_shndx] == kNowhere) return std::nullopt;
    if (symbol.st_value > sections[symbol.st_shndx].sh_size) return std::nullopt;
    return places[symbol.st_shndx] + symbol.st_value;
  }
};

std::string Object::readHeader() {
  const auto* header = table<Elf64_Ehdr>(bytes, size, 0, 1);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_type != ET_REL ||
      header->e_machine != EM_X86_64 || header->e_shentsize != sizeof(Elf64_Shdr))
    return "no relocatable ELF object for x86-64";
  sections = table<Elf64_Shdr>(bytes, size, header->e_shoff, header->e_shnum);
  count = header->e_shnum;
  return sections ? "" : "its section table leaves the file";
}

/// Constants and code share one mapping, so that relative addresses reach.
std::string Object::placeSections() {
  places.assign(count, kNowhere);
  uint64_t held = 0;
  for (size_t i = 0; i < count; ++i) {
    const Elf64_Shdr& s = sections[i];
    if (s.sh_type == SHT_SYMTAB) symbolTable = &s;
    if (!(s.sh_flags & SHF_ALLOC) || s.sh_type == SHT_NOBITS) continue;
    if (!table<char>(bytes, size, s.sh_offset, s.sh_size)) return "a section leaves the file";
    held += s.sh_size; // each at most the file's
    if (held > size) return "its sections overlap";
    const uint64_t align = s.sh_addralign ? s.sh_addralign : 1;
    if (align > kPage || (align & (align - 1)))
      return "an alignment of " + std::to_string(align) + " bytes";
    end = (end + align - 1) & ~(align - 1);
    places[i] = end;
    end += s.sh_size;
  }
  return symbolTable && symbolTable->sh_link < count ? "" : "no symbol table";
}

std::string Object::readSymbols() {
  symbolCount = symbolTable->sh_size / sizeof(Elf64_Sym);
  symbols = table<Elf64_Sym>(bytes, size, symbolTable->sh_offset, symbolCount);
  const Elf64_Shdr& strings = sections[symbolTable->sh_link];
  names = table<char>(bytes, size, strings.sh_offset, strings.sh_size);
  nameBytes = strings.sh_size;
  if (!symbols || !names || nameBytes == 0 || names[nameBytes - 1] != 0)
    return "its symbols leave the file";
  return "";
}

/// Writes the address of `target`, with the addend, to `where`. Says what is wrong; empty: nothing.
std::string patch(char* where, const char* target, const Elf64_Rela& relocation) {
  // Modulo 2^64: an addend may be anything.
  const uint64_t absolute =
      reinterpret_cast<uintptr_t>(target) + static_cast<uint64_t>(relocation.r_addend);
  const uint64_t relative = absolute - reinterpret_cast<uintptr_t>(where);
  const auto narrow = static_cast<int32_t>(relative);
  switch (ELF64_R_TYPE(relocation.r_info)) {
  case R_X86_64_64: std::memcpy(where, &absolute, 8); return "";
  case R_X86_64_PC64: std::memcpy(where, &relative, 8); return "";
  case R_X86_64_PC32:
  case R_X86_64_PLT32:
    if (static_cast<uint64_t>(int64_t{narrow}) != relative)
      return "a relative address beyond 32 bits";
    std::memcpy(where, &narrow, 4);
    return "";
  default: return "a relocation of type " + std::to_string(ELF64_R_TYPE(relocation.r_info));
  }
}

/// The relocations of one section, which `memory` holds with all others. Says what is wrong; empty:
/// nothing.
std::string relocate(const Object& object, const Elf64_Shdr& list, char* memory) {
  if (list.sh_type == SHT_REL) return "relocations without addends";
  if (list.sh_type != SHT_RELA || list.sh_info >= object.count ||
      object.places[list.sh_info] == Object::kNowhere)
    return "";
  const uint64_t relocations = list.sh_size / sizeof(Elf64_Rela);
  const auto* rela = table<Elf64_Rela>(object.bytes, object.size, list.sh_offset, relocations);
  if (!rela) return "its relocations leave the file";
  const uint64_t sectionBytes = object.sections[list.sh_info].sh_size;
  for (uint64_t r = 0; r < relocations; ++r) {
    const uint64_t index = ELF64_R_SYM(rela[r].r_info), type = ELF64_R_TYPE(rela[r].r_info);
    std::optional<uint64_t> target;
    if (index < object.symbolCount) target = object.placeOf(object.symbols[index]);
    if (!target) {
      const bool isNamed =
          index < object.symbolCount && object.symbols[index].st_name < object.nameBytes;
      return std::string("it refers to '") +
             (isNamed ? object.names + object.symbols[index].st_name : "?") +
             "', which is not part of it";
    }
    const uint64_t width = type == R_X86_64_64 || type == R_X86_64_PC64 ? 8 : 4;
    if (rela[r].r_offset > sectionBytes || sectionBytes - rela[r].r_offset < width)
      return "a relocation leaves its section";
    char* where = memory + object.places[list.sh_info] + rela[r].r_offset;
    if (std::string wrong = patch(where, memory + *target, rela[r]); !wrong.empty()) return wrong;
  }
  return "";
}

} // namespace

bool Code::place(const char* bytes, size_t size) {
  Object object{.bytes = bytes, .size = size};
  if (const std::string wrong = object.readHeader(); !wrong.empty()) return fail(wrong);
  if (const std::string wrong = object.placeSections(); !wrong.empty()) return fail(wrong);
  bytes_ = (object.end + kPage) & ~(kPage - 1);
  void* mapped = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return fail("no " + std::to_string(bytes_) + " bytes of memory for it");
  memory_ = static_cast<char*>(mapped);
  for (size_t i = 0; i < object.count; ++i)
    if (object.places[i] != Object::kNowhere)
      std::memcpy(memory_ + object.places[i], bytes + object.sections[i].sh_offset,
                  object.sections[i].sh_size);
  if (const std::string wrong = object.readSymbols(); !wrong.empty()) return fail(wrong);
  for (size_t i = 0; i < object.count; ++i)
    if (const std::string wrong = relocate(object, object.sections[i], memory_); !wrong.empty())
      return fail(wrong);

  for (uint64_t i = 0; i < object.symbolCount; ++i) {
    const Elf64_Sym& symbol = object.symbols[i];
    const std::optional<uint64_t> at = object.placeOf(symbol);
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_name >= object.nameBytes || !at)
      continue;
    const Elf64_Shdr& home = object.sections[symbol.st_shndx];
    if (!(home.sh_flags & SHF_EXECINSTR) || symbol.st_value == home.sh_size)
      return fail("a function without code");
    functions_.push_back({object.names + symbol.st_name, *at});
  }
  std::sort(functions_.begin(), functions_.end(),
            [](const Symbol& a, const Symbol& b) { return a.name < b.name; });
  if (mprotect(memory_, bytes_, PROT_READ | PROT_EXEC) != 0)
    return fail("the system does not let it be executed");
  return true;
}

} // namespace cpu
