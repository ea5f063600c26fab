#pragma once

#include <array>

#include "simulator/isa/isa.h"
#include "simulator/result.h"

namespace candela::npu {

/// One instruction as it lies in memory: bit 0 is the lowest of `low`.
struct Word {
  uint64_t low = 0, high = 0;
  bool operator==(const Word&) const = default;
};

inline constexpr int kMaxFields = 10;

/// One instruction, decoded. Values are true ones: signed where the field is, "less one" undone.
struct Insn {
  Op op = Op::kNop;
  uint8_t engine = 0;
  uint8_t waitSemaphore = 0, waitCount = 0;     ///< count 0: no wait
  uint8_t signalSemaphore = 0, signalCount = 0; ///< count 0: no signal
  bool mark = false;
  std::array<int64_t, kMaxFields> values{}; ///< by field::<op>::k<Field>

  bool operator==(const Insn&) const = default;
};

/// The word of an instruction. Errors: a value that its field cannot hold, an engine that cannot
/// run it.
Result<Word> encode(const Insn& insn);
/// The instruction of a word. Errors: an unknown opcode, an engine that cannot run it, an unknown
/// value of an enum, a bit that is reserved. decode(encode(x)) = x, and encode(decode(w)) = w
/// wherever both exist.
Result<Insn> decode(const Word& word);

/// A descriptor register.
using DescriptorBits = std::array<uint64_t, 4>;
inline constexpr int kMaxDescriptorFields = 27;
/// Its fields by descriptor::<kind>::k<Field>.
using DescriptorValues = std::array<int64_t, kMaxDescriptorFields>;

/// Of a type as a descriptor has it.
inline int64_t bytesOf(int64_t type) { return bytesOf(static_cast<Type>(type)); }
inline int64_t tableBytes(int64_t type) { return tableBytes(static_cast<Type>(type)); }

Result<DescriptorBits> encodeDescriptor(DescriptorKind kind, const DescriptorValues& values);
Result<DescriptorValues> decodeDescriptor(DescriptorKind kind, const DescriptorBits& bits);

/// An instruction with its descriptors decoded; index registers are added to addresses already.
struct Operation {
  Insn insn;
  DescriptorValues d{}, second{};
};
/// Decodes the descriptors of an instruction. Errors: bits that are no descriptor of the kind that
/// the operation has.
Result<Operation> operationOf(const Insn& insn, const DescriptorBits& d,
                              const DescriptorBits& second);

} // namespace candela::npu
