#include "simulator/binary/binary.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <utility>

#include "simulator/error.h"

namespace candela::npu {
namespace {

constexpr char kMagic[8] = {'C', 'D', 'L', 'N', 'P', 'U', '\r', '\n'};
constexpr uint32_t kFormat = 1;
constexpr size_t kHeaderBytes = 48, kRecordBytes = 24, kChecksumAt = 40;
/// kCores is there where a program has code for several.
enum Section : uint32_t { kRegions = 1, kCode, kConstants, kSymbols, kStrings, kCores };
constexpr uint32_t kSections = 6;
constexpr std::string_view kSectionNames[] = {"",        "regions", "code", "constants",
                                              "symbols", "strings", "cores"};
constexpr size_t kUnit[] = {0, 16, 16, 1, 16, 1, 8};
constexpr size_t kMostCores = static_cast<size_t>(kKeys[key::kCoresCount].high);

template <typename T> T get(std::span<const std::byte> bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}
template <typename T> void put(std::vector<std::byte>& bytes, T value) {
  const size_t at = bytes.size();
  bytes.resize(at + sizeof value);
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

using Sections = std::array<std::span<const std::byte>, kSections + 1>;

Result<Sections> sectionsOf(std::span<const std::byte> bytes) {
  const uint32_t count = get<uint32_t>(bytes, 12);
  if (count > kSections || bytes.size() < kHeaderBytes + count * kRecordBytes)
    return error("header: {} sections do not fit into {} bytes", count, bytes.size());
  Sections sections;
  std::array<bool, kSections + 1> seen{};
  for (uint32_t i = 0; i < count; ++i) {
    const size_t at = kHeaderBytes + i * kRecordBytes;
    const uint32_t kind = get<uint32_t>(bytes, at);
    const uint64_t offset = get<uint64_t>(bytes, at + 8), size = get<uint64_t>(bytes, at + 16);
    if (kind < kRegions || kind > kCores || get<uint32_t>(bytes, at + 4) != 0)
      return error("section {}: kind {} is unknown", i, kind);
    const std::string_view name = kSectionNames[kind];
    if (std::exchange(seen[kind], true)) return error("section {}: it is there twice", name);
    if (offset > bytes.size() || size > bytes.size() - offset)
      return error("section {}: {} bytes at {} leave the file of {} bytes", name, size, offset,
                   bytes.size());
    if (size % kUnit[kind])
      return error("section {}: {} bytes are no multiple of {}", name, size, kUnit[kind]);
    sections[kind] = bytes.subspan(offset, size);
  }
  return sections;
}

Result<std::string> stringAt(std::span<const std::byte> strings, uint32_t at,
                             std::string_view owner) {
  if (at >= strings.size())
    return error("{}: string {} of {} bytes of strings", owner, at, strings.size());
  const auto* text = reinterpret_cast<const char*>(strings.data()) + at;
  const size_t length = strnlen(text, strings.size() - at);
  if (length == strings.size() - at) return error("{}: string {} has no end", owner, at);
  return std::string(text, length);
}

Outcome readRegions(const Sections& sections, Binary& binary) {
  const auto records = sections[kRegions];
  if (records.size() / 16 > kMaxRegions)
    return error("section regions: {} regions, there may be {}", records.size() / 16, kMaxRegions);
  bool hasConstants = false;
  for (size_t at = 0; at < records.size(); at += 16) {
    const std::string owner = fmt::format("region {}", at / 16);
    Result<std::string> name = stringAt(sections[kStrings], get<uint32_t>(records, at), owner);
    if (!name) return error("{}", name.message());
    const uint32_t kind = get<uint32_t>(records, at + 4);
    const uint64_t size = get<uint64_t>(records, at + 8);
    if (kind >= std::size(kRegionClassNames))
      return error("{} '{}': class {} is unknown", owner, *name, kind);
    if (size > uint64_t{1} << 32)
      return error("{} '{}': {} bytes, offsets reach {}", owner, *name, size, uint64_t{1} << 32);
    for (const Region& other : binary.regions)
      if (other.name == *name) return error("{}: '{}' is there twice", owner, *name);
    if (kind == 0) {
      if (std::exchange(hasConstants, true))
        return error("{} '{}': a second one of class constants", owner, *name);
      if (size != sections[kConstants].size())
        return error("{} '{}': {} bytes, the section constants has {}", owner, *name, size,
                     sections[kConstants].size());
    }
    binary.regions.push_back({*std::move(name), static_cast<RegionClass>(kind), size});
  }
  if (!hasConstants && !sections[kConstants].empty())
    return error("section constants: {} bytes, and no region of that class",
                 sections[kConstants].size());
  return {};
}

Outcome readSymbols(const Sections& sections, Binary& binary) {
  uint64_t free = 0;
  const auto records = sections[kSymbols];
  for (size_t at = 0; at < records.size(); at += 16) {
    const std::string owner = fmt::format("symbol {}", at / 16);
    Symbol symbol{get<uint32_t>(records, at),
                  get<uint32_t>(records, at + 4),
                  {},
                  get<uint32_t>(records, at + 12)};
    if (symbol.first < free)
      return error("{}: begins at {}, the one before ends at {}", owner, symbol.first, free);
    free = uint64_t{symbol.first} + symbol.count;
    if (symbol.count == 0 || free > binary.code.size())
      return error("{}: {} instructions from {}, there are {}", owner, symbol.count, symbol.first,
                   binary.code.size());
    Result<std::string> node = stringAt(sections[kStrings], get<uint32_t>(records, at + 8), owner);
    if (!node) return error("{}", node.message());
    symbol.node = *std::move(node);
    binary.symbols.push_back(std::move(symbol));
  }
  return {};
}

/// Behind code and symbols.
Outcome readCores(const Sections& sections, Binary& binary) {
  const auto records = sections[kCores];
  if (records.size() / 8 > kMostCores || records.size() == 8)
    return error("section cores: {} cores, there may be 2 to {}", records.size() / 8, kMostCores);
  uint64_t free = 0;
  for (size_t at = 0; at < records.size(); at += 8) {
    const CoreCode code{get<uint32_t>(records, at), get<uint32_t>(records, at + 4)};
    if (code.first != free || code.count == 0 || free + code.count > binary.code.size())
      return error("core {}: {} instructions from {}, the one before ends at {} of {}", at / 8,
                   code.count, code.first, free, binary.code.size());
    free += code.count;
    binary.cores.push_back(code);
  }
  if (!binary.cores.empty() && free != binary.code.size())
    return error("section cores: the last one ends at {} of {} instructions", free,
                 binary.code.size());
  for (const Symbol& symbol : binary.symbols)
    if (binary.coreOf(symbol.first) != binary.coreOf(symbol.first + symbol.count - 1))
      return error("symbol '{}': {} instructions from {} are of two cores", symbol.node,
                   symbol.count, symbol.first);
  return {};
}

} // namespace

CoreCode Binary::codeOf(size_t core) const {
  if (cores.empty() && core == 0) return {0, static_cast<uint32_t>(code.size())};
  return core < cores.size() ? cores[core] : CoreCode{};
}

size_t Binary::coreOf(uint32_t instruction) const {
  const auto after =
      std::upper_bound(cores.begin(), cores.end(), instruction,
                       [](uint32_t at, const CoreCode& each) { return at < each.first; });
  return after == cores.begin() ? 0 : static_cast<size_t>(after - cores.begin()) - 1;
}

std::string Binary::coreText(uint32_t instruction) const {
  return cores.empty() ? std::string() : fmt::format("core {} ", coreOf(instruction));
}

Outcome checkCores(const Insn& insn, const Configuration& configuration) {
  if (insn.op != Op::kPost && insn.op != Op::kAwait) return {};
  const std::string_view name = opInfo(static_cast<uint64_t>(insn.op))->name;
  if (configuration.cores() == 1)
    return error("{}: '{}' has one core (cores.count = 1)", name, configuration.name);
  if (insn.op == Op::kPost) return {};
  const int64_t core = insn.values[field::await::kCore];
  const int64_t of = insn.values[field::await::kOf];
  if (core >= static_cast<int64_t>(configuration.cores()))
    return error("{}: core {}, '{}' has {}", name, core, configuration.name, configuration.cores());
  if (of >= kEngineCount || !(configuration.engines() >> of & 1))
    return error("{}: '{}' has no engine {}", name, configuration.name, of);
  return {};
}

Outcome checkCores(const Binary& binary, const Configuration& configuration) {
  if (binary.coreCount() <= configuration.cores()) return {};
  return error("the program is for {} cores, '{}' has {} (cores.count)", binary.coreCount(),
               configuration.name, configuration.cores());
}

std::string Binary::origin(uint32_t instruction) const {
  const auto after =
      std::upper_bound(symbols.begin(), symbols.end(), instruction,
                       [](uint32_t at, const Symbol& symbol) { return at < symbol.first; });
  if (after == symbols.begin()) return {};
  const Symbol& symbol = *std::prev(after);
  if (instruction - symbol.first >= symbol.count) return {};
  return fmt::format("{} tile {}: ", symbol.node, symbol.tile);
}

uint64_t binaryChecksum(std::span<const std::byte> bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = 0; i < bytes.size(); ++i)
    if (i < kChecksumAt || i >= kChecksumAt + 8)
      hash = (hash ^ static_cast<uint8_t>(bytes[i])) * 0x100000001b3;
  return hash;
}

std::vector<std::byte> writeBinary(const Binary& binary) {
  std::string strings = binary.configurationName + '\0';
  std::map<std::string, uint32_t> known;
  const auto text = [&](const std::string& value) {
    const auto [at, isNew] = known.try_emplace(value, static_cast<uint32_t>(strings.size()));
    if (isNew) strings += value + '\0';
    return at->second;
  };
  std::vector<std::byte> parts[kSections + 1];
  for (const Region& region : binary.regions) {
    put(parts[kRegions], text(region.name));
    put(parts[kRegions], static_cast<uint32_t>(region.kind));
    put(parts[kRegions], region.bytes);
  }
  for (const Word& word : binary.code) {
    put(parts[kCode], word.low);
    put(parts[kCode], word.high);
  }
  parts[kConstants] = binary.constants;
  for (const Symbol& symbol : binary.symbols) {
    put(parts[kSymbols], symbol.first);
    put(parts[kSymbols], symbol.count);
    put(parts[kSymbols], text(symbol.node));
    put(parts[kSymbols], symbol.tile);
  }
  for (const char c : strings) parts[kStrings].push_back(static_cast<std::byte>(c));
  for (const CoreCode& core : binary.cores) {
    put(parts[kCores], core.first);
    put(parts[kCores], core.count);
  }
  const uint32_t sections = binary.cores.empty() ? kSections - 1 : kSections;

  std::vector<std::byte> file;
  for (const char c : kMagic) file.push_back(static_cast<std::byte>(c));
  put(file, kFormat);
  put(file, sections);
  put(file, kSpecHash);
  put(file, binary.configurationHash);
  size_t offset = kHeaderBytes + sections * kRecordBytes;
  for (uint32_t kind = kRegions; kind <= sections; ++kind) offset += parts[kind].size();
  file.reserve(offset);
  put(file, uint64_t{offset});
  put(file, uint64_t{0});
  offset = kHeaderBytes + sections * kRecordBytes;
  for (uint32_t kind = kRegions; kind <= sections; ++kind) {
    put(file, kind);
    put(file, uint32_t{0});
    put(file, uint64_t{offset});
    put(file, uint64_t{parts[kind].size()});
    offset += parts[kind].size();
  }
  for (uint32_t kind = kRegions; kind <= sections; ++kind)
    file.insert(file.end(), parts[kind].begin(), parts[kind].end());
  const uint64_t checksum = binaryChecksum(file);
  std::memcpy(file.data() + kChecksumAt, &checksum, sizeof checksum);
  return file;
}

Result<Binary> readBinary(std::span<const std::byte> bytes) {
  if (bytes.size() < kHeaderBytes)
    return error("header: {} bytes, it has {}", bytes.size(), kHeaderBytes);
  if (std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0)
    return error("header: this is no NPU binary");
  if (const uint32_t format = get<uint32_t>(bytes, 8); format != kFormat)
    return error("header: format {}, this reads {}", format, kFormat);
  if (const uint64_t spec = get<uint64_t>(bytes, 16); spec != kSpecHash)
    return error("header: made for instruction set {:016x}, this is {:016x}", spec, kSpecHash);
  if (const uint64_t size = get<uint64_t>(bytes, 32); size != bytes.size())
    return error("header: the file had {} bytes, {} are here", size, bytes.size());
  if (const uint64_t sum = get<uint64_t>(bytes, kChecksumAt); sum != binaryChecksum(bytes))
    return error("header: checksum {:016x}, the bytes have {:016x}", sum, binaryChecksum(bytes));
  Result<Sections> sections = sectionsOf(bytes);
  if (!sections) return error("{}", sections.message());
  Binary binary;
  binary.configurationHash = get<uint64_t>(bytes, 24);
  Result<std::string> name = stringAt((*sections)[kStrings], 0, "header");
  if (!name) return error("{}", name.message());
  binary.configurationName = *std::move(name);
  const auto code = (*sections)[kCode];
  for (size_t at = 0; at < code.size(); at += 16)
    binary.code.push_back({get<uint64_t>(code, at), get<uint64_t>(code, at + 8)});
  const auto constants = (*sections)[kConstants];
  binary.constants.assign(constants.begin(), constants.end());
  if (Outcome bad = readRegions(*sections, binary)) return *bad;
  if (Outcome bad = readSymbols(*sections, binary)) return *bad;
  if (Outcome bad = readCores(*sections, binary)) return *bad;
  return binary;
}

} // namespace candela::npu
