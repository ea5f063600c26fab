#include "simulator/config/preset.h"

// As wherever else the library stands in this process: its inline functions differ without being
// named differently.
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/support/text/nesting.h"
#include "simulator/error.h"
#include "simulator/isa/isa.h"

namespace candela::npu {
namespace {

int keyIndex(std::string_view name) {
  for (int i = 0; i < key::kCount; ++i)
    if (kKeys[i].name == name) return i;
  return -1;
}

/// The name that differs least, as a hint.
std::string nearest(std::string_view name) {
  std::string best;
  size_t least = 4;
  for (const KeyInfo& info : kKeys) {
    std::vector<size_t> row(info.name.size() + 1);
    for (size_t j = 0; j < row.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= name.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t j = 1; j < row.size(); ++j) {
        const size_t change = diagonal + (name[i - 1] != info.name[j - 1]);
        diagonal = row[j];
        row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
      }
    }
    if (row.back() < least) {
      least = row.back();
      best = fmt::format("; did you mean {}?", info.name);
    }
  }
  return best;
}

class Reader {
public:
  Reader(std::string_view file, Configuration& into) : file_(file), into_(into) {}

  Outcome section(const toml::table& table, const std::string& prefix) {
    for (const auto& [name, node] : table) {
      const std::string full = prefix + std::string(name.str());
      if (const toml::table* inner = node.as_table()) {
        const bool known =
            prefix.empty() &&
            std::any_of(std::begin(kKeys), std::end(kKeys), [&](const KeyInfo& info) {
              return info.name.substr(0, full.size() + 1) == full + ".";
            });
        if (!known)
          return error("{}:{}: there is no section {}", file_, node.source().begin.line, full);
        if (Outcome bad = section(*inner, full + ".")) return bad;
      } else if (Outcome bad = value(full, node)) {
        return bad;
      }
    }
    return {};
  }

private:
  Outcome value(const std::string& name, const toml::node& node) {
    const std::string place = fmt::format("{}:{}: {}", file_, node.source().begin.line, name);
    const int index = keyIndex(name);
    if (index < 0) return error("{}: there is no such key{}", place, nearest(name));
    const KeyInfo& info = kKeys[index];
    if (info.isString) {
      const auto text = node.value_exact<std::string>();
      if (!text) return error("{}: a string is wanted", place);
      if (index == key::kName) {
        const bool plain = !text->empty() && text->size() <= 64 &&
                           std::all_of(text->begin(), text->end(),
                                       [](unsigned char c) { return c > 32 && c < 127; });
        if (!plain)
          return error("{}: 1 to 64 printable characters without spaces are wanted", place);
        into_.name = *text;
        return {};
      }
      const auto at = std::find(info.values.begin(), info.values.end(), *text);
      if (at == info.values.end())
        return error("{}: '{}' is none of {}", place, *text, fmt::join(info.values, ", "));
      into_.values[index] = at - info.values.begin();
      return {};
    }
    const auto number = node.value_exact<int64_t>();
    if (!number) return error("{}: an integer is wanted", place);
    if (*number < info.low || *number > info.high)
      return error("{}: {} is outside of {}..{}", place, *number, info.low, info.high);
    if (info.powerOfTwo && !std::has_single_bit(static_cast<uint64_t>(*number)))
      return error("{}: {} is no power of two", place, *number);
    into_.values[index] = *number;
    return {};
  }

  std::string_view file_;
  Configuration& into_;
};

/// Whether it says something: keys of a memory in which nothing lies say nothing, nor does what
/// passes between cores where there is one.
bool isInUse(const Configuration& configuration, int key) {
  if (key == key::kCoresPostCycles) return configuration.cores() > 1;
  return configuration.hasSecond() || !kKeys[key].name.starts_with("second.");
}

/// What no single range says.
Outcome contradictions(const Configuration& c, std::string_view file) {
  const int64_t stripe = c[key::kScratchpadBanks] * c[key::kScratchpadBankWidth];
  if (c.scratchpadBytes() % stripe)
    return error("{}: scratchpad.bytes {} is no multiple of banks {} x bank_width {}", file,
                 c.scratchpadBytes(), c[key::kScratchpadBanks], c[key::kScratchpadBankWidth]);
  const int64_t row = 4 * c.columns(), accBytes = c[key::kAccumulatorBytes];
  if (c.accumulatorRows() == 0)
    return error("{}: accumulator.bytes {} has no row of 4 x array.columns {} in each of {} banks",
                 file, accBytes, c.columns(), c[key::kAccumulatorBanks]);
  const bool isWhole = accBytes % (row * c[key::kAccumulatorBanks]) == 0;
  if (!isWhole && std::has_single_bit(static_cast<uint64_t>(c.columns())))
    return error("{}: accumulator.bytes {} is no multiple of banks {} x 4 x array.columns {}", file,
                 accBytes, c[key::kAccumulatorBanks], c.columns());
  if (c.accumulatorRows() > 65536)
    return error("{}: accumulator.bytes {} makes {} rows of {} columns, instructions reach 65536",
                 file, accBytes, c.accumulatorRows(), c.columns());
  const int64_t least = int64_t{c.rows()} * c.columns() + c.rows();
  if (c.scratchpadBytes() < least)
    return error("{}: scratchpad.bytes {} does not hold the {} bytes of one weight tile and one "
                 "vector of the {} x {} array",
                 file, c.scratchpadBytes(), least, c.rows(), c.columns());
  if (c.isSecondFlash() && c.valueText(key::kSecondHolds) == "activations")
    return error("{}: second.holds is activations, which are written; second.type {} is flash",
                 file, c.valueText(key::kSecondType));
  if (c[key::kDramBytes] < c.scratchpadBytes())
    return error("{}: dram.bytes {} is less than scratchpad.bytes {}", file, c[key::kDramBytes],
                 c.scratchpadBytes());
  return {};
}

} // namespace

uint32_t Configuration::engines() const {
  uint32_t mask = bitOf(Engine::kControl) | bitOf(Engine::kMatrix) | bitOf(Engine::kRequant) |
                  bitOf(Engine::kVector);
  for (int i = 0; i < loadChannels(); ++i) mask |= bitOf(Engine::kLoad0) << i;
  for (int i = 0; i < storeChannels(); ++i) mask |= bitOf(Engine::kStore0) << i;
  return mask;
}

bool Configuration::isSecondFlash() const {
  return hasSecond() && valueText(key::kSecondType).starts_with("NOR-");
}

MemoryId memoryOf(const Configuration& configuration, RegionClass kind) {
  if (!configuration.hasSecond()) return MemoryId::kDram;
  const bool holdsConstants = configuration.valueText(key::kSecondHolds) == "constants";
  return (kind == RegionClass::kConstants) == holdsConstants ? MemoryId::kSecond : MemoryId::kDram;
}

uint64_t Configuration::hash() const {
  uint64_t hash = 0xcbf29ce484222325; // FNV-1a, 64 bits
  // What the model alone has counts where it is used: the hash of a device that can be built is
  // that of its hardware.
  const auto counts = [&](int i) {
    const bool isUnused = kKeys[i].hardware == Hardware::kDefault && values[i] == kKeys[i].preset;
    return kKeys[i].isHashed && !isUnused && isInUse(*this, i);
  };
  for (int i = 0; i < key::kCount; ++i)
    if (counts(i))
      for (int byte = 0; byte < 8; ++byte)
        hash = (hash ^ (static_cast<uint64_t>(values[i]) >> (8 * byte) & 0xff)) * 0x100000001b3;
  return hash;
}

std::string Configuration::valueText(int key) const {
  if (key == key::kName) return name;
  return kKeys[key].isString ? std::string(kKeys[key].values[values[key]])
                             : fmt::format("{}", values[key]);
}

std::string Configuration::toml() const {
  std::string text, section;
  for (int i = 0; i < key::kCount; ++i) {
    const std::string_view full = kKeys[i].name;
    const size_t dot = full.find('.');
    if (dot != full.npos && full.substr(0, dot) != section) {
      section = full.substr(0, dot);
      text += fmt::format("\n[{}]\n", section);
    }
    std::string value = valueText(i);
    if (kKeys[i].isString) {
      for (size_t at = 0; (at = value.find_first_of("\"\\", at)) != value.npos; at += 2)
        value.insert(at, "\\");
      value = '"' + value + '"';
    }
    text += fmt::format("{} = {}\n", dot == full.npos ? full : full.substr(dot + 1), value);
  }
  return text;
}

namespace {

bool isOfModelOnly(const KeyInfo& info, int64_t value) {
  switch (info.hardware) {
  case Hardware::kPowersOfTwo: return !std::has_single_bit(static_cast<uint64_t>(value));
  case Hardware::kDefault: return value != info.preset;
  default: return false;
  }
}

} // namespace

std::vector<ModelOnly> modelOnly(const Configuration& configuration) {
  std::vector<ModelOnly> found;
  for (int i = 0; i < key::kCount; ++i)
    if (isInUse(configuration, i) && isOfModelOnly(kKeys[i], configuration[i]))
      found.push_back({kKeys[i].name, configuration.valueText(i)});
  return found;
}

std::string modelOnlyText(const Configuration& configuration) {
  std::string text;
  for (const ModelOnly& setting : modelOnly(configuration))
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", setting.key, setting.value);
  return text;
}

Outcome needHardware(const Configuration& configuration, std::string_view what) {
  const std::string text = modelOnlyText(configuration);
  if (text.empty()) return {};
  return error("'{}': {}: no hardware description has that; {}", configuration.name, text, what);
}

Outcome needOneCoreAndMemory(const Configuration& configuration, std::string_view what) {
  if (configuration.cores() > 1)
    return error("'{}': cores.count = {}: {} one core", configuration.name, configuration.cores(),
                 what);
  if (configuration.compressesConstants())
    return error("'{}': weights.compression = {}: {} one memory, which keeps bytes as they are",
                 configuration.name, configuration.valueText(key::kWeightsCompression), what);
  if (!configuration.hasSecond()) return {};
  return error("'{}': second.holds = {}: {} one memory", configuration.name,
               configuration.valueText(key::kSecondHolds), what);
}

Result<Configuration> parseConfiguration(std::string_view text, std::string_view file) {
  Configuration configuration;
  for (int i = 0; i < key::kCount; ++i) configuration.values[i] = kKeys[i].preset;
  if (const size_t names = candela::text::tomlLevels(text); names > candela::text::kMostLevels)
    return error("{}: a key has {} names, {} are the limit", file, names,
                 candela::text::kMostLevels);
  const toml::parse_result parsed = toml::parse(text, file);
  if (!parsed)
    return error("{}:{}: {}", file, parsed.error().source().begin.line,
                 parsed.error().description());
  if (Outcome bad = Reader(file, configuration).section(parsed.table(), "")) return *bad;
  if (configuration.name.empty()) return error("{}: the key name is missing", file);
  if (Outcome bad = contradictions(configuration, file)) return *bad;
  return configuration;
}

namespace {

const Preset* presetNamed(const std::string& name) {
  const auto found = std::ranges::find(presets(), name, &Preset::name);
  return found == presets().end() ? nullptr : &*found;
}

Result<Configuration> read(const Preset& preset) {
  return parseConfiguration(preset.toml, fmt::format("preset {}", preset.name));
}

std::string presetNames() {
  std::vector<std::string_view> names;
  for (const Preset& preset : presets()) names.push_back(preset.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

} // namespace

Result<Configuration> findPreset(const std::string& name) {
  if (const Preset* preset = presetNamed(name)) return read(*preset);
  return error("there is no preset '{}'; there are {}; another configuration is given by --npu",
               name, presetNames());
}

Result<Configuration> findConfiguration(const std::string& nameOrPath) {
  if (const Preset* preset = presetNamed(nameOrPath)) return read(*preset);
  const bool isPath =
      nameOrPath.find('/') != nameOrPath.npos ||
      (nameOrPath.size() > 5 && nameOrPath.compare(nameOrPath.size() - 5, 5, ".toml") == 0);
  if (!isPath)
    return error("there is no preset '{}'; there are {}, or a path to a .toml file", nameOrPath,
                 presetNames());
  std::error_code ignored;
  if (std::filesystem::exists(nameOrPath, ignored) &&
      !std::filesystem::is_regular_file(nameOrPath, ignored))
    return error("{}: not a regular file", nameOrPath);
  std::ifstream file(nameOrPath, std::ios::binary);
  std::stringstream text;
  if (!file || !(text << file.rdbuf())) return error("{}: cannot be read", nameOrPath);
  return parseConfiguration(text.str(), nameOrPath);
}

} // namespace candela::npu
