#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace candela::npu {

/// What the number in a field is, and so how it reads in text.
enum class FieldKind : uint8_t {
  kUint,
  kInt,
  kHex,
  kScratchpad,
  kFar,
  kAcc,
  kIndex,
  kMask,
  kEnum,
  kDescriptor
};

struct FieldInfo {
  std::string_view name;
  int lsb;  ///< lowest bit of the word or descriptor
  int bits; ///< 1..64, from there on
  FieldKind kind;
  int of;        ///< kEnum: index into kEnums; kDescriptor: the DescriptorKind
  bool minusOne; ///< the field holds its value less one
  int moreLsb;   ///< where its bits above those lie, inverted where the top one of those is 1
  int moreBits;  ///< how many; 0: none

  int width() const { return bits + moreBits; }
};
struct EnumMember {
  std::string_view name;
  int value;
};
struct EnumInfo {
  std::string_view name;
  std::span<const EnumMember> members;
  size_t
      hardware; ///< the first so many of them are in hardware; those behind them models alone have
};
struct DescriptorInfo {
  std::string_view name;
  std::span<const FieldInfo> fields;
};

#include "simulator/isa/generated/isa_names.inc"

struct OpInfo {
  Op op;
  std::string_view name;
  uint32_t engines; ///< bit n: may go to engine n
  std::span<const FieldInfo> fields;
  int second; ///< DescriptorKind of the register behind the one in field d, or -1
};

#include "simulator/isa/generated/isa.inc"

/// Whether an instruction of an engine does more than wait, signal and meet other cores.
inline bool hasWork(Op op) { return op != Op::kNop && op != Op::kPost && op != Op::kAwait; }

/// Numbers that are no integers.
inline bool isFloat(Type type) { return type == Type::kBf16 || type == Type::kF32; }
/// Bytes of an element.
inline int bytesOf(Type type) {
  switch (type) {
  case Type::kI32:
  case Type::kF32: return 4;
  case Type::kI16:
  case Type::kBf16: return 2;
  default: return 1;
  }
}
/// Bytes of the table that maps a type of 8 or 16 bits.
inline int64_t tableBytes(Type type) { return type == Type::kI16 ? 2 * 513 : 256; }

/// The op's record, or null for an opcode that is none.
const OpInfo* opInfo(uint64_t opcode);
/// The record by name, or null.
const OpInfo* opInfo(std::string_view name);
inline const DescriptorInfo& descriptorInfo(DescriptorKind kind) {
  return kDescriptorTable[static_cast<int>(kind)];
}
/// The member's name, empty if there is none.
std::string_view memberName(const EnumInfo& info, int64_t value);
inline std::string_view engineName(int engine) { return kEngineNames[engine]; }
inline constexpr uint32_t bitOf(Engine engine) { return 1u << static_cast<int>(engine); }
inline bool isLoad(int engine) {
  return engine >= int(Engine::kLoad0) && engine <= int(Engine::kLoad3);
}
inline bool isStore(int engine) {
  return engine >= int(Engine::kStore0) && engine <= int(Engine::kStore3);
}

} // namespace candela::npu
