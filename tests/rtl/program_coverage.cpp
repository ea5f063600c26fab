#include "tests/rtl/program_coverage.h"

#include <fmt/format.h>

#include "simulator/error.h"
#include "simulator/isa/grammar.h"
#include "simulator/timing/program_state.h"

namespace candela::npu {
namespace {

/// Whether a field has values worth telling apart: what is drawn by itself, members, single bits.
/// Addresses and strides follow from others.
bool isTold(const FieldInfo& field, const Draw& draw) {
  if (field.kind == FieldKind::kDescriptor || field.kind == FieldKind::kIndex) return false;
  return field.kind == FieldKind::kEnum || field.width() == 1 ||
         (draw.isFree && draw.low < draw.high);
}
int64_t leastOf(const FieldInfo& field, const Draw& draw) {
  return field.width() == 1 ? 0 : draw.low;
}

/// Calls visit(field's name, field, draw) for the fields of an operation's word that are told
/// apart.
template <typename Visit> void eachField(const OpInfo& info, Visit visit) {
  const std::span<const Draw> draws = kOpDraws[&info - kOpTable];
  for (size_t i = 0; i < info.fields.size(); ++i)
    if (isTold(info.fields[i], draws[i]))
      visit(fmt::format("{}.{}", info.name, info.fields[i].name), info.fields[i], draws[i], i);
}
/// The same of a descriptor that it names.
template <typename Visit> void eachField(const OpInfo& info, DescriptorKind kind, Visit visit) {
  const DescriptorInfo& descriptor = descriptorInfo(kind);
  const std::span<const Draw> draws = kDescriptorDraws[static_cast<size_t>(kind)];
  for (size_t i = 0; i < descriptor.fields.size(); ++i)
    if (isTold(descriptor.fields[i], draws[i]))
      visit(fmt::format("{}.{}.{}", info.name, descriptor.name, descriptor.fields[i].name),
            descriptor.fields[i], draws[i], i);
}

/// The kinds of the descriptors that an operation of an engine names; setd writes one.
std::vector<std::pair<std::string_view, DescriptorKind>> descriptorsOf(const OpInfo& info) {
  std::vector<std::pair<std::string_view, DescriptorKind>> found;
  if (info.engines == bitOf(Engine::kControl)) return found;
  for (const FieldInfo& field : info.fields)
    if (field.kind == FieldKind::kDescriptor)
      found.emplace_back(field.name, static_cast<DescriptorKind>(field.of));
  return found;
}

} // namespace

ProgramCoverage::ProgramCoverage(const Configuration& configuration) {
  const auto addBins = [&](const std::string& name, const FieldInfo& field, const Draw&, size_t) {
    if (field.kind == FieldKind::kEnum) {
      const EnumInfo& info = kEnums[field.of];
      for (const EnumMember& member : info.members.first(info.hardware))
        if (configuration.hasInt16() || info.name != "type" || member.name != "i16")
          bins_[fmt::format("{}={}", name, member.name)] = 0;
      return;
    }
    bins_[name + "=least"] = bins_[name + "=more"] = 0;
  };
  for (const OpInfo& info : std::span(kOpTable).first(kHardwareOps)) {
    for (int engine = 0; engine < kEngineCount; ++engine)
      if (info.engines & configuration.engines() & (1u << engine))
        bins_[fmt::format("{}@{}", info.name, engineName(engine))] = 0;
    for (const char* header : {"waits", "signals", "marked"})
      bins_[fmt::format("{}.{}", info.name, header)] = 0;
    eachField(info, addBins);
    for (const auto& [name, kind] : descriptorsOf(info)) eachField(info, kind, addBins);
  }
}

Outcome ProgramCoverage::take(const Binary& binary) {
  std::vector<Insn> code;
  for (const Word& word : binary.code) {
    Result<Insn> insn = decode(word);
    if (!insn) return error("{}", insn.message());
    code.push_back(*insn);
  }
  ProgramState state(0, static_cast<uint32_t>(code.size()));
  while (!state.hasEnded()) {
    const Insn& insn = code[state.pc()];
    const bool isSent = insn.engine != static_cast<int>(Engine::kControl);
    const Result<Operation> operation = isSent ? state.operation(insn) : Operation{.insn = insn};
    if (!operation) return error("{}", operation.message());
    add(*operation);
    if (insn.op == Op::kHalt) break;
    if (Outcome bad = state.apply(insn)) return bad;
    state.advance();
  }
  return {};
}

void ProgramCoverage::add(const Operation& operation) {
  const Insn& insn = operation.insn;
  const OpInfo& info = *opInfo(static_cast<uint64_t>(insn.op));
  hit(fmt::format("{}@{}", info.name, engineName(insn.engine)));
  if (insn.waitCount) hit(fmt::format("{}.waits", info.name));
  if (insn.signalCount) hit(fmt::format("{}.signals", info.name));
  if (insn.mark) hit(fmt::format("{}.marked", info.name));
  eachField(info, [&](const std::string& name, const FieldInfo& field, const Draw& draw, size_t i) {
    addField(name, field, draw, insn.values[i]);
  });
  const bool hasSecond = insn.op != Op::kRequant || insn.values[field::requant::kResidual];
  for (const auto& [name, kind] : descriptorsOf(info)) {
    if (name != "d" && !hasSecond) continue;
    const DescriptorValues& values = name == "d" ? operation.d : operation.second;
    eachField(info, kind,
              [&](const std::string& field, const FieldInfo& of, const Draw& draw, size_t i) {
                addField(field, of, draw, values[i]);
              });
  }
}

void ProgramCoverage::addField(const std::string& name, const FieldInfo& field, const Draw& draw,
                               int64_t value) {
  if (field.kind == FieldKind::kEnum)
    return hit(fmt::format("{}={}", name, memberName(kEnums[field.of], value)));
  hit(name + (value > leastOf(field, draw) ? "=more" : "=least"));
}

void ProgramCoverage::hit(const std::string& bin) {
  const auto at = bins_.find(bin);
  if (at != bins_.end()) ++at->second;
}

} // namespace candela::npu
