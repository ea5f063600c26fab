#include <fmt/ranges.h>

#include "simulator/error.h"
#include "simulator/isa/assembler.h"
#include "simulator/isa/text.h"

namespace candela::npu {
namespace {

void constantsText(const std::vector<std::byte>& bytes, std::string& text) {
  for (size_t at = 0; at < bytes.size();) {
    size_t zeros = 0;
    while (at + zeros < bytes.size() && bytes[at + zeros] == std::byte{}) ++zeros;
    if (zeros >= 32 || at + zeros == bytes.size()) {
      text += fmt::format(".zeros {}\n", zeros);
      at += zeros;
      continue;
    }
    text += ".bytes";
    for (const size_t end = std::min(at + 32, bytes.size()); at < end; ++at)
      text += fmt::format(" {}", static_cast<int>(bytes[at]));
    text += '\n';
  }
}

} // namespace

std::string insnText(const Insn& insn) {
  const OpInfo& info = *opInfo(static_cast<uint64_t>(insn.op));
  std::string text(info.name);
  if (info.engines & (info.engines - 1)) text += fmt::format("@{}", engineName(insn.engine));
  for (size_t i = 0; i < info.fields.size(); ++i) {
    const FieldInfo& field = info.fields[i];
    const bool isAddress =
        i + 1 < info.fields.size() && info.fields[i + 1].kind == FieldKind::kIndex;
    if (field.kind == FieldKind::kIndex && i > 0 && insn.values[i] >= 0 &&
        info.fields[i - 1].kind != FieldKind::kIndex)
      continue; // stands with its address
    text += fmt::format(" {}={}", field.name, fieldText(field, insn.values[i]));
    if (isAddress && insn.values[i + 1]) text += fmt::format("+x{}", insn.values[i + 1]);
  }
  if (insn.waitCount) text += fmt::format(" wait=s{}:{}", insn.waitSemaphore, insn.waitCount);
  if (insn.signalCount)
    text += fmt::format(" signal=s{}:{}", insn.signalSemaphore, insn.signalCount);
  if (insn.mark) text += " mark";
  return text;
}

Result<std::string> disassemble(const Binary& binary) {
  std::string text =
      fmt::format("; instruction set {:016x}, configuration {:016x}\n.config {}\n", kSpecHash,
                  binary.configurationHash, quotedWord(binary.configurationName));
  for (const Region& region : binary.regions) {
    text += fmt::format(".region {} {} {}\n", quotedWord(region.name),
                        kRegionClassNames[static_cast<int>(region.kind)], region.bytes);
    if (region.kind == RegionClass::kConstants) constantsText(binary.constants, text);
  }
  size_t symbol = 0;
  for (uint32_t i = 0; i < binary.code.size(); ++i) {
    if (const size_t core = binary.coreOf(i);
        !binary.cores.empty() && binary.cores[core].first == i)
      text += fmt::format(".core {}\n", core);
    if (symbol < binary.symbols.size() && binary.symbols[symbol].first == i)
      text += fmt::format(".node {} {}\n", quotedWord(binary.symbols[symbol].node),
                          binary.symbols[symbol].tile);
    Result<Insn> insn = decode(binary.code[i]);
    if (!insn) return error("instruction {}: {}{}", i, binary.origin(i), insn.message());
    text += insnText(*insn) + '\n';
    if (symbol < binary.symbols.size() &&
        binary.symbols[symbol].first + binary.symbols[symbol].count == i + 1) {
      ++symbol;
      const bool isSameCore =
          i + 1 < binary.code.size() && binary.coreOf(i) == binary.coreOf(i + 1);
      if (isSameCore && (symbol == binary.symbols.size() || binary.symbols[symbol].first != i + 1))
        text += ".node\n";
    }
  }
  return text;
}

} // namespace candela::npu
