#include "tools/candela/package/objects.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

#include "core/support/text/scan.h"

namespace candela::tool {
namespace {

constexpr std::string_view kArchiveMagic = "!<arch>\n";
constexpr size_t kMemberHeader = 60, kMemberName = 16, kMemberSize = 48, kMemberSizeDigits = 10;

Status badArchive(const std::string& what) {
  return failure(Code::bad_model, "object code that a backend emitted: {}", what);
}

/// The text of a field, without the spaces that fill it.
std::string fieldText(const char* from, size_t width) {
  const std::string text(from, width);
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

Result<std::map<std::string, Bytes>> readMembers(const Bytes& archive) {
  const char* bytes = reinterpret_cast<const char*>(archive.data());
  if (archive.size() < kArchiveMagic.size() ||
      std::string_view(bytes, kArchiveMagic.size()) != kArchiveMagic)
    return badArchive("no archive");
  std::map<std::string, Bytes> members;
  for (uint64_t at = kArchiveMagic.size(); at < archive.size();) {
    if (archive.size() - at < kMemberHeader) return badArchive("a header that leaves it");
    std::string name = fieldText(bytes + at, kMemberName);
    if (name.ends_with('/')) name.pop_back();
    const auto size =
        text::parseNumber<uint64_t>(fieldText(bytes + at + kMemberSize, kMemberSizeDigits));
    at += kMemberHeader;
    if (!size || *size > archive.size() - at)
      return badArchive(fmt::format("member '{}' leaves it", name));
    members[name] = archive.slice(at, *size);
    at += *size + *size % 2;
  }
  return members;
}

} // namespace

Result<ObjectFiles> readObjects(const Bytes& archive) {
  CDL_ASSIGN(const auto members, readMembers(archive));
  for (const char* name : {"code.o", "weights.o", "weights", "facts"})
    if (!members.count(name)) return badArchive(fmt::format("no member '{}'", name));
  ObjectFiles files{members.at("code.o"), members.at("weights.o"), members.at("weights"), {}};
  const Bytes& facts = members.at("facts");
  if (facts.size() < sizeof files.facts)
    return badArchive(
        fmt::format("facts of {} bytes, expected {}", facts.size(), sizeof files.facts));
  std::memcpy(&files.facts, facts.data(), sizeof files.facts);
  if (files.facts.format != CDL_OBJECT_FORMAT)
    return badArchive(fmt::format("format {}, expected {}", files.facts.format, CDL_OBJECT_FORMAT));
  if (files.facts.weights_bytes != files.weights.size() ||
      files.weights.size() < sizeof(cdl_object_weights_t))
    return badArchive(fmt::format("weights of {} bytes, its facts say {}", files.weights.size(),
                                  files.facts.weights_bytes));
  for (char* text : {files.facts.triple, files.facts.isa, files.facts.maker}) text[63] = '\0';
  files.facts.needs[sizeof files.facts.needs - 1] = '\0';
  return files;
}

} // namespace candela::tool
