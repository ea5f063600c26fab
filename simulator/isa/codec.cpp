#include "simulator/isa/codec.h"

#include "simulator/error.h"

namespace candela::npu {
namespace {

constexpr bool hasRoomForFields() {
  for (const DescriptorInfo& info : kDescriptorTable)
    if (info.fields.size() > size_t{kMaxDescriptorFields}) return false;
  return true;
}
static_assert(hasRoomForFields(), "kMaxDescriptorFields is the most of any kind");

constexpr uint64_t maskOf(int bits) {
  return bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
}

uint64_t extract(std::span<const uint64_t> words, int lsb, int bits) {
  const int word = lsb / 64, shift = lsb % 64;
  uint64_t value = words[word] >> shift;
  if (shift + bits > 64) value |= words[word + 1] << (64 - shift);
  return value & maskOf(bits);
}

void insert(std::span<uint64_t> words, int lsb, int bits, uint64_t value) {
  const int word = lsb / 64, shift = lsb % 64;
  words[word] |= value << shift;
  if (shift + bits > 64) words[word + 1] |= value >> (64 - shift);
}

/// All bits of a field, and the same put there.
uint64_t extract(std::span<const uint64_t> words, const FieldInfo& field) {
  const uint64_t low = extract(words, field.lsb, field.bits);
  if (field.moreBits == 0) return low;
  const uint64_t more = extract(words, field.moreLsb, field.moreBits);
  return low | (low >> (field.bits - 1) ? more ^ maskOf(field.moreBits) : more) << field.bits;
}
void insert(std::span<uint64_t> words, const FieldInfo& field, uint64_t value) {
  const uint64_t low = value & maskOf(field.bits);
  insert(words, field.lsb, field.bits, low);
  if (field.moreBits == 0) return;
  const uint64_t more = value >> field.bits;
  insert(words, field.moreLsb, field.moreBits,
         low >> (field.bits - 1) ? more ^ maskOf(field.moreBits) : more);
}

Result<uint64_t> toBits(const FieldInfo& field, int64_t value, std::string_view owner) {
  const int64_t stored = field.minusOne ? value - 1 : value;
  if (field.kind == FieldKind::kEnum && memberName(kEnums[field.of], value).empty())
    return error("{}: {} has no member {}", owner, kEnums[field.of].name, value);
  if (field.bits == 64) return static_cast<uint64_t>(stored);
  const int64_t add = field.minusOne ? 1 : 0;
  const bool isSigned = field.kind == FieldKind::kInt;
  const int64_t low = isSigned ? -(int64_t{1} << (field.width() - 1)) : 0;
  const int64_t high = isSigned ? -low - 1 : static_cast<int64_t>(maskOf(field.bits));
  if (stored < low || stored > high)
    return error("{}: {} is {}, its field holds {}..{}", owner, field.name, value, low + add,
                 high + add);
  return static_cast<uint64_t>(stored) & maskOf(field.width());
}

Result<int64_t> toValue(const FieldInfo& field, uint64_t bits, std::string_view owner) {
  int64_t value = static_cast<int64_t>(bits);
  if (field.kind == FieldKind::kInt && field.bits < 64 && (bits >> (field.width() - 1) & 1))
    value -= int64_t{1} << field.width();
  if (field.kind == FieldKind::kEnum && memberName(kEnums[field.of], value).empty())
    return error("{}: field {} holds {}, which names no {}", owner, field.name, value,
                 kEnums[field.of].name);
  return field.minusOne ? value + 1 : value;
}

/// All fields of `bits`, and nothing but zeros beside them from bit `from` on.
Outcome readFields(std::span<const FieldInfo> fields, std::span<const uint64_t> bits,
                   std::span<int64_t> values, std::string_view owner, int from) {
  uint64_t used[4] = {};
  if (from > 0) insert(used, 0, from, maskOf(from));
  for (size_t i = 0; i < fields.size(); ++i) {
    Result<int64_t> value = toValue(fields[i], extract(bits, fields[i]), owner);
    if (!value) return error("{}", value.message());
    values[i] = *value;
    insert(used, fields[i].lsb, fields[i].bits, maskOf(fields[i].bits));
    if (fields[i].moreBits)
      insert(used, fields[i].moreLsb, fields[i].moreBits, maskOf(fields[i].moreBits));
  }
  for (size_t word = 0; word < bits.size(); ++word)
    if (const uint64_t extra = bits[word] & ~used[word])
      return error("{}: reserved bit {} is set", owner,
                   64 * word + static_cast<size_t>(__builtin_ctzll(extra)));
  return {};
}

Outcome writeFields(std::span<const FieldInfo> fields, std::span<const int64_t> values,
                    std::span<uint64_t> bits, std::string_view owner) {
  for (size_t i = 0; i < fields.size(); ++i) {
    Result<uint64_t> field = toBits(fields[i], values[i], owner);
    if (!field) return error("{}", field.message());
    insert(bits, fields[i], *field);
  }
  return {};
}

} // namespace

const OpInfo* opInfo(uint64_t opcode) {
  static const std::array<const OpInfo*, 256> byOpcode = [] {
    std::array<const OpInfo*, 256> table{};
    for (const OpInfo& info : kOpTable) table[static_cast<uint8_t>(info.op)] = &info;
    return table;
  }();
  return opcode < byOpcode.size() ? byOpcode[opcode] : nullptr;
}

const OpInfo* opInfo(std::string_view name) {
  for (const OpInfo& info : kOpTable)
    if (info.name == name) return &info;
  return nullptr;
}

std::string_view memberName(const EnumInfo& info, int64_t value) {
  for (const EnumMember& member : info.members)
    if (member.value == value) return member.name;
  return {};
}

Result<Word> encode(const Insn& insn) {
  const OpInfo* info = opInfo(static_cast<uint64_t>(insn.op));
  if (!info) return error("opcode {:#04x} is no operation", static_cast<int>(insn.op));
  if (insn.engine >= kEngineCount)
    return error("{}: there is no engine {}", info->name, insn.engine);
  if (!(info->engines >> insn.engine & 1))
    return error("{}: engine {} cannot run it", info->name, engineName(insn.engine));
  if ((insn.waitCount == 0 && insn.waitSemaphore) ||
      (insn.signalCount == 0 && insn.signalSemaphore))
    return error("{}: a semaphore is named with the count 0", info->name);
  const int64_t head[] = {
      static_cast<int64_t>(insn.op), insn.engine,      insn.waitSemaphore, insn.waitCount,
      insn.signalSemaphore,          insn.signalCount, insn.mark};
  uint64_t bits[2] = {};
  if (Outcome bad = writeFields(kHeaderFields, head, bits, info->name)) return *bad;
  if (Outcome bad = writeFields(info->fields, insn.values, bits, info->name)) return *bad;
  return Word{bits[0], bits[1]};
}

Result<Insn> decode(const Word& word) {
  const uint64_t bits[] = {word.low, word.high};
  const OpInfo* info = opInfo(word.low & 0xff);
  if (!info) return error("opcode {:#04x} is no operation", word.low & 0xff);
  int64_t head[std::size(kHeaderFields)];
  const uint64_t headBits[] = {word.low & maskOf(32)};
  if (Outcome bad = readFields(kHeaderFields, headBits, head, info->name, 0)) return *bad;
  Insn insn;
  insn.op = info->op;
  if (head[header::kEngine] >= kEngineCount)
    return error("{}: there is no engine {}", info->name, head[header::kEngine]);
  insn.engine = static_cast<uint8_t>(head[header::kEngine]);
  if (!(info->engines >> insn.engine & 1))
    return error("{}: engine {} cannot run it", info->name, engineName(insn.engine));
  insn.waitSemaphore = static_cast<uint8_t>(head[header::kWaitSemaphore]);
  insn.waitCount = static_cast<uint8_t>(head[header::kWaitCount]);
  insn.signalSemaphore = static_cast<uint8_t>(head[header::kSignalSemaphore]);
  insn.signalCount = static_cast<uint8_t>(head[header::kSignalCount]);
  insn.mark = head[header::kMark] != 0;
  if ((insn.waitCount == 0 && insn.waitSemaphore) ||
      (insn.signalCount == 0 && insn.signalSemaphore))
    return error("{}: a semaphore is named with the count 0", info->name);
  if (Outcome bad = readFields(info->fields, bits, insn.values, info->name, 32)) return *bad;
  return insn;
}

Result<DescriptorBits> encodeDescriptor(DescriptorKind kind, const DescriptorValues& values) {
  const DescriptorInfo& info = descriptorInfo(kind);
  DescriptorBits bits{};
  if (Outcome bad = writeFields(info.fields, values, bits, info.name)) return *bad;
  return bits;
}

Result<DescriptorValues> decodeDescriptor(DescriptorKind kind, const DescriptorBits& bits) {
  const DescriptorInfo& info = descriptorInfo(kind);
  DescriptorValues values{};
  if (Outcome bad = readFields(info.fields, bits, values, info.name, 0)) return *bad;
  return values;
}

Result<Operation> operationOf(const Insn& insn, const DescriptorBits& d,
                              const DescriptorBits& second) {
  Operation operation{insn, {}, {}};
  const OpInfo& info = *opInfo(static_cast<uint64_t>(insn.op));
  int kinds = 0;
  for (const FieldInfo& field : info.fields) {
    if (field.kind != FieldKind::kDescriptor) continue;
    const auto kind = static_cast<DescriptorKind>(field.of);
    if (kinds++ && insn.op == Op::kRequant && !insn.values[field::requant::kResidual]) continue;
    Result<DescriptorValues> values = decodeDescriptor(kind, field.name == "d" ? d : second);
    if (!values) return error("descriptor {}", values.message());
    (field.name == "d" ? operation.d : operation.second) = *values;
  }
  return operation;
}

} // namespace candela::npu
