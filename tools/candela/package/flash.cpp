#include "tools/candela/package/flash.h"

#include <cstring>

#include <elf.h>

namespace candela::tool {
namespace {

Status noObject(const char* what) {
  return failure(Code::bad_model, "object code that a backend emitted: {}", what);
}

template <typename Header, typename Section> Result<uint64_t> loadedIn(const Bytes& object) {
  Header header;
  if (object.size() < sizeof header) return noObject("an ELF header that leaves it");
  std::memcpy(&header, object.data(), sizeof header);
  if (header.e_shentsize != sizeof(Section) || header.e_shoff > object.size() ||
      header.e_shnum > (object.size() - header.e_shoff) / sizeof(Section))
    return noObject("a table of sections that leaves it");
  uint64_t bytes = 0;
  for (size_t s = 0; s < header.e_shnum; ++s) {
    Section section;
    std::memcpy(&section, object.data() + header.e_shoff + s * sizeof section, sizeof section);
    if (!(section.sh_flags & SHF_ALLOC)) continue;
    const uint64_t alignment = section.sh_addralign ? section.sh_addralign : 1;
    bytes = (bytes + alignment - 1) / alignment * alignment + section.sh_size;
  }
  return bytes;
}

} // namespace

Result<uint64_t> loadedBytes(const Bytes& object) {
  if (object.size() < EI_NIDENT || std::memcmp(object.data(), ELFMAG, SELFMAG) != 0)
    return noObject("no ELF object");
  const auto kind = static_cast<unsigned char>(object.data()[EI_CLASS]);
  if (kind == ELFCLASS32) return loadedIn<Elf32_Ehdr, Elf32_Shdr>(object);
  if (kind == ELFCLASS64) return loadedIn<Elf64_Ehdr, Elf64_Shdr>(object);
  return noObject("an ELF object of neither 32 nor 64 bits");
}

} // namespace candela::tool
