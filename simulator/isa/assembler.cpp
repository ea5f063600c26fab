#include "simulator/isa/assembler.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "simulator/config/preset.h"
#include "simulator/error.h"
#include "simulator/isa/text.h"

namespace candela::npu {
namespace {

using Words = std::vector<std::string>;

/// "key=value", or no value.
std::pair<std::string_view, std::optional<std::string_view>> split(std::string_view word) {
  const size_t at = word.find('=');
  if (at == word.npos) return {word, {}};
  return {word.substr(0, at), word.substr(at + 1)};
}

class Assembler {
public:
  explicit Assembler(const std::optional<Configuration>& configuration)
      : configuration_(configuration) {}

  Outcome line(std::string_view text) {
    Result<Words> words = wordsOf(text);
    if (!words) return error("{}", words.message());
    if (words->empty()) return {};
    const std::string& first = (*words)[0];
    if (first[0] == '.') return directive(*words);
    if (first == "desc") return descriptor(*words);
    if (first == "endloop") return endLoop(*words);
    return instruction(*words);
  }

  Result<Binary> finish() {
    if (!loops_.empty()) return error("loop at instruction {} has no endloop", loops_.back());
    if (Outcome bad = closeCore()) return *bad;
    if (!configuration_) return error("no configuration: neither .config nor --npu");
    closeSymbol();
    if (binary_.cores.size() == 1) binary_.cores.clear();
    if (Outcome bad = checkCores(binary_, *configuration_)) return *bad;
    binary_.configurationName = configuration_->name;
    binary_.configurationHash = configuration_->hash();
    for (Region& region : binary_.regions)
      if (region.kind == RegionClass::kConstants) {
        if (region.bytes == 0) region.bytes = binary_.constants.size();
        if (region.bytes < binary_.constants.size())
          return error(".region {}: {} bytes of constants, it has {}", region.name,
                       binary_.constants.size(), region.bytes);
        binary_.constants.resize(region.bytes);
      }
    return std::move(binary_);
  }

private:
  Outcome directive(const Words& words) {
    const std::string& name = words[0];
    if (name == ".config") return config(words);
    if (name == ".region") return region(words);
    if (name == ".node") return node(words);
    if (name == ".core") return core(words);
    if (name == ".bytes" || name == ".halves" || name == ".words" || name == ".zeros" ||
        name == ".params")
      return data(words);
    return error("there is no directive {}", name);
  }

  Outcome config(const Words& words) {
    if (words.size() != 2) return error(".config: one name is wanted");
    if (configuration_) return {};
    Result<Configuration> found = findPreset(words[1]);
    if (!found) return error(".config: {}", found.message());
    configuration_ = *std::move(found);
    return {};
  }

  Outcome region(const Words& words) {
    if (words.size() < 3 || words.size() > 4)
      return error(".region: a name, a class and a size are wanted");
    if (binary_.regions.size() == kMaxRegions)
      return error(".region {}: there may be {}", words[1], kMaxRegions);
    const auto known =
        std::find(std::begin(kRegionClassNames), std::end(kRegionClassNames), words[2]);
    if (known == std::end(kRegionClassNames))
      return error(".region {}: class '{}' is none of {}", words[1], words[2],
                   fmt::join(kRegionClassNames, ", "));
    Region region{words[1], static_cast<RegionClass>(known - std::begin(kRegionClassNames)), 0};
    for (const Region& other : binary_.regions) {
      if (other.name == region.name) return error(".region {}: it is there twice", region.name);
      if (other.kind == RegionClass::kConstants && region.kind == other.kind)
        return error(".region {}: {} has the constants", region.name, other.name);
    }
    const auto bytes = words.size() == 4 ? numberOf(words[3]) : std::optional<int64_t>(0);
    if (!bytes || *bytes < 0 || *bytes > int64_t{1} << 32 ||
        (words.size() == 3 && region.kind != RegionClass::kConstants))
      return error(".region {}: a size of 0..{} bytes is wanted", region.name, int64_t{1} << 32);
    region.bytes = static_cast<uint64_t>(*bytes);
    binary_.regions.push_back(std::move(region));
    return {};
  }

  /// ".core 2": what follows is core 2's. The first one may be left out where it is the only one.
  Outcome core(const Words& words) {
    const auto number = words.size() == 2 ? numberOf(words[1]) : std::optional<int64_t>();
    if (!number || *number != static_cast<int64_t>(binary_.cores.size()))
      return error(".core: the number {} is wanted: cores follow one another",
                   binary_.cores.size());
    if (!loops_.empty())
      return error(".core {}: the loop at instruction {} has no endloop", *number, loops_.back());
    if (binary_.cores.empty() && !binary_.code.empty())
      return error(".core {}: {} instructions stand before it", *number, binary_.code.size());
    if (Outcome bad = closeCore()) return bad;
    closeSymbol();
    binary_.cores.push_back({static_cast<uint32_t>(binary_.code.size()), 0});
    return {};
  }
  /// Ends the code of the last core.
  Outcome closeCore() {
    if (binary_.cores.empty()) return {};
    CoreCode& last = binary_.cores.back();
    last.count = static_cast<uint32_t>(binary_.code.size()) - last.first;
    if (last.count) return {};
    return error(".core {}: it has no instruction", binary_.cores.size() - 1);
  }

  Outcome node(const Words& words) {
    closeSymbol();
    if (words.size() == 1) return {};
    const auto tile = words.size() == 3 ? numberOf(words[2]) : std::optional<int64_t>(0);
    if (words.size() > 3 || !tile || *tile < 0 || *tile > UINT32_MAX)
      return error(".node: a name and a tile are wanted");
    if (words[1].find('\0') != words[1].npos) return error(".node: a name holds no 0");
    symbol_ = Symbol{static_cast<uint32_t>(binary_.code.size()), 0, words[1],
                     static_cast<uint32_t>(*tile)};
    return {};
  }
  void closeSymbol() {
    if (!symbol_) return;
    symbol_->count = static_cast<uint32_t>(binary_.code.size()) - symbol_->first;
    if (symbol_->count) binary_.symbols.push_back(*symbol_);
    symbol_.reset();
  }

  void append(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i)
      binary_.constants.push_back(static_cast<std::byte>(value >> (8 * i)));
  }
  Outcome data(const Words& words) {
    const std::string& name = words[0];
    if (std::none_of(binary_.regions.begin(), binary_.regions.end(),
                     [](const Region& region) { return region.kind == RegionClass::kConstants; }))
      return error("{}: there is no region of class constants before it", name);
    std::vector<int64_t> values;
    for (size_t i = 1; i < words.size(); ++i) {
      const auto value = numberOf(words[i]);
      if (!value) return error("{}: '{}' is no number", name, words[i]);
      values.push_back(*value);
    }
    const auto within = [&](size_t i, int64_t low, int64_t high) {
      return values[i] >= low && values[i] <= high;
    };
    if (name == ".zeros") {
      if (values.size() != 1 || !within(0, 0, int64_t{1} << 31))
        return error(".zeros: one count is wanted");
      binary_.constants.resize(binary_.constants.size() + static_cast<size_t>(values[0]));
      return {};
    }
    if (name == ".params") {
      if (values.size() != 3 || !within(0, INT32_MIN, INT32_MAX) || !within(1, 0, 0xffffff) ||
          !within(2, 0, 255))
        return error(".params: a bias, a multiplier of 24 bits and a shift of 8 are wanted");
      append(static_cast<uint64_t>(values[0]), 4);
      append(static_cast<uint64_t>(values[1] | values[2] << 24), 4);
      return {};
    }
    int bytes = 4;
    if (name == ".bytes") bytes = 1;
    if (name == ".halves") bytes = 2;
    for (size_t i = 0; i < values.size(); ++i) {
      if (!within(i, -(int64_t{1} << (8 * bytes - 1)), (int64_t{1} << 8 * bytes) - 1))
        return error("{}: {} is out of range", name, values[i]);
      append(static_cast<uint64_t>(values[i]), bytes);
    }
    return {};
  }

  Outcome push(const Insn& insn) {
    Result<Word> word = encode(insn);
    if (!word) return error("{}", word.message());
    binary_.code.push_back(*word);
    return {};
  }

  Outcome descriptor(const Words& words) {
    const auto number = words.size() > 2 && words[1][0] == 'd'
                            ? numberOf(std::string_view(words[1]).substr(1))
                            : std::optional<int64_t>();
    if (!number || *number < 0 || *number >= kDescriptors)
      return error("desc: d0..d{} and a kind are wanted", kDescriptors - 1);
    for (int kind = 0; kind < static_cast<int>(std::size(kDescriptorTable)); ++kind) {
      const DescriptorInfo& info = kDescriptorTable[kind];
      if (info.name != words[2]) continue;
      DescriptorValues values{};
      for (size_t i = 0; i < info.fields.size(); ++i) values[i] = info.fields[i].minusOne;
      for (size_t w = 3; w < words.size(); ++w) {
        const auto [name, text] = split(words[w]);
        size_t i = 0;
        while (i < info.fields.size() && info.fields[i].name != name) ++i;
        if (i == info.fields.size() || !text)
          return error("desc {}: there is no field '{}'", info.name, words[w]);
        Result<int64_t> value = fieldValueOf(info.fields[i], *text);
        if (!value) return error("desc {}: {}", info.name, value.message());
        values[i] = *value;
      }
      Result<DescriptorBits> bits = encodeDescriptor(static_cast<DescriptorKind>(kind), values);
      if (!bits) return error("desc: {}", bits.message());
      for (int word = 0; word < 4; ++word) {
        Insn insn;
        insn.op = Op::kSetd;
        insn.values = {*number, word, static_cast<int64_t>((*bits)[word])};
        if (Outcome bad = push(insn)) return bad;
      }
      return {};
    }
    return error("desc: there is no kind '{}'", words[2]);
  }

  Outcome endLoop(const Words& words) {
    if (loops_.empty() || words.size() != 1) return error("endloop without a loop");
    const uint32_t at = loops_.back();
    loops_.pop_back();
    const uint32_t length = static_cast<uint32_t>(binary_.code.size()) - at - 1;
    Result<Insn> loop = decode(binary_.code[at]);
    loop->values[field::loop::kLength] = length;
    Result<Word> word = encode(*loop);
    if (!word) return error("{}", word.message());
    binary_.code[at] = *word;
    return {};
  }

  /// "s3:2": semaphore 3, count 2.
  Outcome semaphore(std::string_view name, std::string_view text, uint8_t& semaphore,
                    uint8_t& count) {
    const size_t colon = text.find(':');
    const bool isNamed = text.size() > 1 && text[0] == 's';
    const int64_t which =
        isNamed ? numberOf(text.substr(1, colon == text.npos ? colon : colon - 1)).value_or(-1)
                : -1;
    const int64_t many = colon == text.npos ? 1 : numberOf(text.substr(colon + 1)).value_or(0);
    if (which < 0 || which >= kSemaphores || many < 1 || many > 7)
      return error("{}: sN:COUNT is wanted, N 0..{}, COUNT 1..7, not '{}'", name, kSemaphores - 1,
                   text);
    semaphore = static_cast<uint8_t>(which);
    count = static_cast<uint8_t>(many);
    return {};
  }

  Outcome instruction(const Words& words) {
    const std::string_view first = words[0];
    const size_t at = first.find('@');
    const OpInfo* info = opInfo(first.substr(0, at));
    if (!info) return error("there is no operation '{}'", first.substr(0, at));
    Insn insn;
    insn.op = info->op;
    insn.engine = static_cast<uint8_t>(__builtin_ctz(info->engines));
    if (at != first.npos) {
      int engine = 0;
      while (engine < kEngineCount && engineName(engine) != first.substr(at + 1)) ++engine;
      if (engine == kEngineCount)
        return error("{}: '{}' is no engine", info->name, first.substr(at + 1));
      insn.engine = static_cast<uint8_t>(engine);
    }
    for (size_t i = 0; i < info->fields.size(); ++i) insn.values[i] = info->fields[i].minusOne;
    bool opensLoop = insn.op == Op::kLoop;
    for (size_t w = 1; w < words.size(); ++w) {
      auto [name, text] = split(words[w]);
      if (name == "mark" && !text) {
        insn.mark = true;
        continue;
      }
      if (!text) return error("{}: '{}' is no field=value", info->name, words[w]);
      if (name == "wait" || name == "signal") {
        if (Outcome bad = name == "wait"
                              ? semaphore(name, *text, insn.waitSemaphore, insn.waitCount)
                              : semaphore(name, *text, insn.signalSemaphore, insn.signalCount))
          return bad;
        continue;
      }
      if (name == "length") opensLoop = false;
      size_t i = 0;
      while (i < info->fields.size() && info->fields[i].name != name) ++i;
      if (i == info->fields.size()) return error("{}: there is no field '{}'", info->name, name);
      // An address may carry its index register: 0x40+x2. That one is the next field.
      if (const size_t plus = text->find("+x"); plus != text->npos && i + 1 < info->fields.size() &&
                                                info->fields[i + 1].kind == FieldKind::kIndex) {
        Result<int64_t> index = fieldValueOf(info->fields[i + 1], text->substr(plus + 1));
        if (!index) return error("{}: {}", info->name, index.message());
        insn.values[i + 1] = *index;
        text = text->substr(0, plus);
      }
      Result<int64_t> value = fieldValueOf(info->fields[i], *text);
      if (!value) return error("{}: {}", info->name, value.message());
      insn.values[i] = *value;
    }
    if (opensLoop) loops_.push_back(static_cast<uint32_t>(binary_.code.size()));
    return push(insn);
  }

  std::optional<Configuration> configuration_;
  Binary binary_;
  std::optional<Symbol> symbol_;
  std::vector<uint32_t> loops_; ///< open ones, by their instruction
};

} // namespace

Result<Binary> assemble(std::string_view text, std::string_view file,
                        const std::optional<Configuration>& configuration) {
  Assembler assembler(configuration);
  size_t number = 0;
  while (!text.empty()) {
    ++number;
    const size_t end = std::min(text.find('\n'), text.size());
    if (Outcome bad = assembler.line(text.substr(0, end)))
      return error("{}:{}: {}", file, number, bad->message);
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  Result<Binary> binary = assembler.finish();
  if (!binary) return error("{}: {}", file, binary.message());
  return binary;
}

} // namespace candela::npu
