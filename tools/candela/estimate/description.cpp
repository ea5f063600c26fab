#include "tools/candela/estimate/description.h"

// As wherever else the library stands in this process: its inline functions differ without being
// named differently.
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <algorithm>
#include <sstream>

#include "core/support/file.h"
#include "core/support/kinds.h"
#include "core/support/text/nesting.h"
#include "core/support/text/scan.h"
#include "tools/candela/support/console.h"

namespace candela::tool {
namespace {

/// A table whose keys are taken one by one; what is left at its end is unknown.
class Section {
public:
  Section(const toml::table& table, std::string file, std::string name)
      : table_(table), file_(std::move(file)), name_(std::move(name)) {}

  template <class... Args>
  [[noreturn]] void bad(std::string_view key, fmt::format_string<Args...> text,
                        Args&&... args) const {
    const toml::node* node = table_.get(key);
    const auto line = node ? node->source().begin.line : table_.source().begin.line;
    const std::string dot = name_.empty() ? "" : ".";
    fail(kBadInput, "{}:{}: {}{}{}: {}", file_, line, name_, dot, key,
         fmt::format(text, std::forward<Args>(args)...));
  }

  const toml::node* take(std::string_view key) {
    taken_.emplace(key);
    return table_.get(key);
  }

  std::string text(std::string_view key, const std::string& otherwise) {
    const toml::node* node = take(key);
    if (!node) return otherwise;
    const auto value = node->value_exact<std::string>();
    if (!value) bad(key, "a string is wanted");
    return *value;
  }

  bool flag(std::string_view key) {
    const toml::node* node = take(key);
    if (!node) return false;
    const auto value = node->value_exact<bool>();
    if (!value) bad(key, "true or false is wanted");
    return *value;
  }

  /// From `low` to `high`.
  double number(std::string_view key, double otherwise, double low, double high) {
    const toml::node* node = take(key);
    return node ? numberOf(*node, key, low, high) : otherwise;
  }

  uint32_t whole(std::string_view key, uint32_t otherwise, uint32_t low, uint32_t high) {
    const toml::node* node = take(key);
    if (!node) return otherwise;
    const auto value = node->value_exact<int64_t>();
    if (!value || *value < low || *value > high)
      bad(key, "an integer from {} to {} is wanted", low, high);
    return static_cast<uint32_t>(*value);
  }

  std::vector<std::string> words(std::string_view key) {
    const toml::node* node = take(key);
    std::vector<std::string> list;
    if (!node) return list;
    if (!node->is_array()) bad(key, "a list of strings is wanted");
    for (const toml::node& each : *node->as_array()) {
      const auto value = each.value_exact<std::string>();
      if (!value) bad(key, "a list of strings is wanted");
      list.push_back(*value);
    }
    return list;
  }

  /// A number, or a table of numbers by element types; what the table lacks is `others`, or the
  /// least of it.
  RateByElem rate(std::string_view key, double low, double high) {
    const toml::node* node = take(key);
    if (!node) bad(key, "is missing");
    RateByElem rate;
    if (!node->is_table()) {
      rate.others = numberOf(*node, key, low, high);
      return rate;
    }
    rate.others = high;
    for (const auto& [name, value] : *node->as_table()) {
      const auto elem = parseElem(name.str());
      if (!elem) bad(key, "'{}' is no element type", name.str());
      const double each = numberOf(value, key, low, high);
      rate.known[*elem] = each;
      rate.others = std::min(rate.others, each);
    }
    if (rate.known.empty()) bad(key, "no element type has a rate");
    return rate;
  }

  /// "512K", "64M", "2G" or a number of bytes.
  uint64_t bytes(std::string_view key) {
    const toml::node* node = take(key);
    if (!node) return 0;
    if (const auto value = node->value_exact<int64_t>(); value && *value > 0)
      return static_cast<uint64_t>(*value);
    const std::string written = node->value_exact<std::string>().value_or("");
    const std::optional<uint64_t> value = text::parseBytes(written);
    if (!value || *value == 0) bad(key, "bytes are wanted: 65536, \"64K\", \"16M\" or \"2G\"");
    return *value;
  }

  void finish() const {
    for (const auto& [key, node] : table_)
      if (!taken_.contains(key.str())) bad(key.str(), "there is no such key");
  }

private:
  double numberOf(const toml::node& node, std::string_view key, double low, double high) const {
    const auto value = node.is_number() ? node.value<double>() : std::nullopt;
    if (!value || !(*value >= low && *value <= high))
      bad(key, "a number from {} to {} is wanted", low, high);
    return *value;
  }

  const toml::table& table_;
  std::string file_;
  std::string name_;
  std::set<std::string, std::less<>> taken_;
};

std::optional<cdl::Profile> parseProfile(std::string_view name) {
#define CDL_X(profile, id, elems)                                                                  \
  if (name == #profile) return cdl::Profile::profile;
  CDL_PROFILES(CDL_X)
#undef CDL_X
  return std::nullopt;
}

constexpr double kMostRate = 1e9; // of a cycle: a number that is no slip

class Reader {
public:
  Reader(const toml::table& table, const std::string& file) : table_(table), file_(file) {
    result_.file = file;
  }

  DeviceDescription read() {
    Section top(table_, file_, "");
    result_.name = top.text("name", "");
    if (result_.name.empty()) top.bad("name", "is missing");
    result_.clockMhz = top.whole("clock_mhz", 0, 1, 100000);
    if (result_.clockMhz == 0) top.bad("clock_mhz", "is missing");
    result_.hasOneDma = top.whole("dma_engines", 2, 1, 2) == 1;
    readLayout(top);
    readProfiles(top);
    readKinds(top);
    readMatrix(section(top, "matrix"));
    readVector(section(top, "vector"));
    readMemories(top);
    top.finish();
    return std::move(result_);
  }

private:
  Section section(Section& top, const std::string& name) {
    const toml::node* node = top.take(name);
    if (!node || !node->is_table()) top.bad(name, "a section [{}] is wanted", name);
    return Section(*node->as_table(), file_, name);
  }

  void readLayout(Section& top) {
    const std::string layout = top.text("image_layout", "nchw");
    if (layout != "nchw" && layout != "nhwc") top.bad("image_layout", "there are nchw and nhwc");
    result_.hasChannelsLast = layout == "nhwc";
  }

  void readProfiles(Section& top) {
    for (const std::string& name : top.words("profiles")) {
      const auto profile = parseProfile(name);
      if (!profile || *profile == cdl::Profile::BASE)
        top.bad("profiles", "'{}' is none of FP32, FP16, BF16, INT8, INT16, FP8, INT4W, MX", name);
      result_.profiles.push_back(*profile);
    }
    if (result_.profiles.empty()) top.bad("profiles", "is missing: [\"INT8\"], [\"FP32\"], ...");
  }

  void readKinds(Section& top) {
    for (const auto& [key, kinds] :
         {std::pair{"takes", &result_.takes}, {"epilogue", &result_.epilogue}})
      for (const std::string& name : top.words(key)) {
        const auto kind = parseKind(name);
        if (!kind || *kind == CDL_KIND_CUSTOM) top.bad(key, "'{}' is no kind of instruction", name);
        kinds->insert(*kind);
      }
    for (const uint16_t kind : result_.takes)
      if (!isOfProfiles(kind) && !isOptional(kind))
        top.bad("takes",
                "a described device has no row of '{}'; it has those of its profiles, attention, "
                "conv2d, elementwise, norm, pool2d, softmax",
                candela::kindName(kind));
    for (const uint16_t kind : result_.epilogue)
      if (!isStep(kind))
        top.bad("epilogue", "'{}' is none of unary, binary, compare, select, convert, rescale",
                candela::kindName(kind));
    if (!result_.takes.empty()) return;
    for (uint16_t kind = 1; kind < CDL_KIND_CUSTOM; ++kind)
      if (isOfProfiles(kind)) result_.takes.insert(kind);
    result_.takes.insert({CDL_KIND_CONV2D, CDL_KIND_POOL2D});
  }

  /// Kinds of which profiles ask for rows.
  static bool isOfProfiles(uint16_t kind) {
    return isPrimitive(kind) || kind == CDL_KIND_SCALED_MATMUL;
  }
  /// Kinds of which a device has rows where it takes them.
  static bool isOptional(uint16_t kind) {
    return kind == CDL_KIND_ATTENTION || kind == CDL_KIND_CONV2D || kind == CDL_KIND_ELEMENTWISE ||
           kind == CDL_KIND_NORM || kind == CDL_KIND_POOL2D || kind == CDL_KIND_SOFTMAX;
  }

  static bool isStep(uint16_t kind) {
    return kind == CDL_KIND_UNARY || kind == CDL_KIND_BINARY || kind == CDL_KIND_COMPARE ||
           kind == CDL_KIND_SELECT || kind == CDL_KIND_CONVERT || kind == CDL_KIND_RESCALE;
  }

  void readMatrix(Section matrix) {
    result_.matrix.macsPerCycle = matrix.rate("macs_per_cycle", 1e-3, kMostRate);
    result_.matrix.rows = matrix.whole("rows", 1, 1, 65536);
    result_.matrix.columns = matrix.whole("columns", 1, 1, 65536);
    result_.matrix.depthwiseMacsPerCycle =
        matrix.number("depthwise_macs_per_cycle", 0, 1e-3, kMostRate);
    result_.matrix.startCycles = matrix.whole("start_cycles", 0, 0, 1000000000);
    matrix.finish();
  }

  void readVector(Section vector) {
    result_.vector.elementsPerCycle = vector.rate("elements_per_cycle", 1e-3, kMostRate);
    result_.vector.functionsPerCycle = vector.number("functions_per_cycle", 0, 1e-3, kMostRate);
    result_.vector.startCycles = vector.whole("start_cycles", 0, 0, 1000000000);
    vector.finish();
  }

  void readMemories(Section& top) {
    const toml::node* node = top.take("memory");
    if (!node || !node->is_array_of_tables()) top.bad("memory", "sections [[memory]] are wanted");
    for (const toml::node& each : *node->as_array()) {
      Section section(*each.as_table(), file_, "memory");
      readMemory(section);
    }
    if (result_.memories.size() > 8) top.bad("memory", "there are more than 8");
  }

  void readMemory(Section& section) {
    DescribedMemory memory;
    memory.name = section.text("name", "");
    if (memory.name.empty()) section.bad("name", "is missing");
    for (const DescribedMemory& other : result_.memories)
      if (other.name == memory.name) section.bad("name", "'{}' stands there twice", memory.name);
    memory.isLocal = section.flag("local");
    memory.holdsSums = section.flag("sums");
    memory.capacityBytes = section.bytes("capacity");
    memory.alignment = section.whole("alignment", 64, 8, 4096);
    memory.bytesPerSecond = 1e9 * section.number("gb_per_s", 0, 1e-6, 1e9);
    memory.startCycles = section.whole("start_cycles", 0, 0, 1000000000);
    checkMemory(section, memory);
    section.finish();
    result_.memories.push_back(std::move(memory));
  }

  void checkMemory(const Section& section, const DescribedMemory& memory) const {
    const bool isFirst = result_.memories.empty();
    if (isFirst && memory.isLocal)
      section.bad("local", "the first memory holds the models: it is none that copies fill");
    if (!isFirst && !memory.isLocal)
      section.bad("local", "a second memory that is not local is not served");
    if (!memory.isLocal && memory.bytesPerSecond <= 0) section.bad("gb_per_s", "is missing");
    if (memory.isLocal && memory.capacityBytes == 0) section.bad("capacity", "is missing");
    if (memory.holdsSums && result_.memories.size() < 2)
      section.bad("sums", "a local memory of everything else stands before it");
    if (memory.alignment & (memory.alignment - 1)) section.bad("alignment", "is no power of two");
  }

  const toml::table& table_;
  const std::string& file_;
  DeviceDescription result_;
};

toml::table parsed(std::string_view text, const std::string& file) {
  if (const size_t levels = text::tomlLevels(text); levels > text::kMostLevels)
    fail(kBadInput, "{}: a key has {} names, {} are the limit", file, levels, text::kMostLevels);
  toml::parse_result result = toml::parse(text, file);
  if (!result)
    fail(kBadInput, "{}:{}: {}", file, result.error().source().begin.line,
         result.error().description());
  return std::move(result).table();
}

/// The table that holds the last word of a key; null: there is none.
toml::table* holderOf(toml::table& top, const std::vector<std::string>& words) {
  if (words.size() == 1) return &top;
  if (words.size() == 2 && words[0] != "memory") return top[words[0]].as_table();
  toml::array* memories =
      words.size() == 3 && words[0] == "memory" ? top["memory"].as_array() : nullptr;
  if (!memories) return nullptr;
  for (toml::node& each : *memories) {
    toml::table* memory = each.as_table();
    if (memory && (*memory)["name"].value<std::string>() == words[1]) return memory;
  }
  return nullptr;
}

} // namespace

double RateByElem::of(Elem elem) const {
  const auto found = known.find(elem);
  return found == known.end() ? others : found->second;
}

bool DeviceDescription::hasLocalMemory() const {
  return std::ranges::any_of(memories, &DescribedMemory::isLocal);
}

DeviceDescription parseDescription(std::string_view text, const std::string& file) {
  const toml::table table = parsed(text, file);
  return Reader(table, file).read();
}

DeviceDescription readDescription(const std::string& path) {
  const Bytes bytes = check(mapFile(path));
  return parseDescription({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

std::string withValue(std::string_view text, const std::string& file, const std::string& key,
                      const std::string& value) {
  toml::table table = parsed(text, file);
  const std::vector<std::string> words = text::split(key, '.');
  toml::table* holder = holderOf(table, words);
  if (!holder) fail(kBadInput, "{}: there is no '{}' to vary", file, key);
  if (const auto whole = text::parseNumber<int64_t>(value))
    holder->insert_or_assign(words.back(), *whole);
  else if (const auto number = text::parseNumber<double>(value))
    holder->insert_or_assign(words.back(), *number);
  else
    holder->insert_or_assign(words.back(), value);
  std::ostringstream out;
  out << table << "\n";
  return out.str();
}

} // namespace candela::tool
