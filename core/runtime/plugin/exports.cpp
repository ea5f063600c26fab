#include "core/runtime/plugin/exports.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "core/runtime/plugin/plugin.h"
#include "core/support/file.h"

namespace candela::runtime::plugin {
namespace {

/// dlopen maps a file that was cut off, and whoever touches what lies behind its end dies of
/// SIGBUS.
Status checkWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const auto size = static_cast<uint64_t>(std::max<std::streamoff>(file.tellg(), 0));
  Elf64_Ehdr header{};
  if (!file.seekg(0).read(reinterpret_cast<char*>(&header), sizeof header) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return {}; // which dlopen says better
  uint64_t needed = header.e_phoff + uint64_t(header.e_phnum) * header.e_phentsize;
  for (uint64_t i = 0; i < header.e_phnum && needed <= size; ++i) {
    Elf64_Phdr segment{};
    const auto at = static_cast<std::streamoff>(header.e_phoff + i * header.e_phentsize);
    if (file.seekg(at).read(reinterpret_cast<char*>(&segment), sizeof segment))
      needed = std::max(needed, segment.p_offset + segment.p_filesz);
  }
  if (needed <= size) return {};
  return failure(
      Code::not_found,
      "{}: the plugin is cut off: it has {} bytes of at least {}; copy or build it again", path,
      size, needed);
}

} // namespace

Result<std::vector<std::string>> exportedSymbols(const std::string& path) {
  CDL_ASSIGN(const Bytes file, mapFile(path));
  const auto* data = reinterpret_cast<const char*>(file.data());
  const auto holds = [&](uint64_t offset, uint64_t size) {
    return offset <= file.size() && size <= file.size() - offset;
  };
  Elf64_Ehdr header;
  if (!holds(0, sizeof header)) return badModel("{}: shorter than an ELF header", path);
  std::memcpy(&header, data, sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64)
    return badModel("{}: not a 64-bit ELF file", path);
  const auto section = [&](uint64_t index, Elf64_Shdr& out) {
    if (index >= header.e_shnum || header.e_shentsize != sizeof out ||
        header.e_shoff > file.size() || !holds(header.e_shoff + index * sizeof out, sizeof out))
      return false;
    std::memcpy(&out, data + header.e_shoff + index * sizeof out, sizeof out);
    return out.sh_type == SHT_NOBITS || holds(out.sh_offset, out.sh_size);
  };
  std::vector<std::string> names;
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr symbols, strings;
    if (!section(i, symbols)) return badModel("{}: section {} leaves the file", path, i);
    if (symbols.sh_type != SHT_DYNSYM) continue;
    if (!section(symbols.sh_link, strings) || strings.sh_type != SHT_STRTAB)
      return badModel("{}: symbols without names", path);
    for (uint64_t at = 0; symbols.sh_size - at >= sizeof(Elf64_Sym); at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      std::memcpy(&symbol, data + symbols.sh_offset + at, sizeof symbol);
      const unsigned binding = ELF64_ST_BIND(symbol.st_info);
      if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_ABS ||
          (binding != STB_GLOBAL && binding != STB_WEAK))
        continue;
      if (symbol.st_name >= strings.sh_size)
        return badModel("{}: a symbol's name leaves the file", path);
      const char* name = data + strings.sh_offset + symbol.st_name;
      names.emplace_back(name, strnlen(name, strings.sh_size - symbol.st_name));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

Status checkPluginFile(const std::string& path) {
  CDL_TRY(checkWhole(path));
  const Result<std::vector<std::string>> symbols = exportedSymbols(path);
  if (!symbols || std::ranges::count(*symbols, CDL_BACKEND_QUERY_SYMBOL)) return {};
  return failure(Code::incompatible, "{}: not a backend plugin: it does not export {}", path,
                 CDL_BACKEND_QUERY_SYMBOL);
}

} // namespace candela::runtime::plugin
