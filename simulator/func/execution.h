#pragma once

#include <algorithm>
#include <cstring>

#include "candela/numerics.h"
#include "simulator/func/kernels.h"
#include "simulator/func/memory.h"
#include "simulator/func/operands.h"

namespace candela::npu {

/// Weights in the array: k x n, less their zero point, as pairs of rows (Kernels::multiply); of
/// bf16 as rows of f32 (Kernels::multiplyFloats).
struct WeightTile {
  int64_t k = 0, n = 0;
  bool isFloat = false;
  std::vector<int16_t> pairs;
  std::vector<float> floats;
};

/// What the matrix engine keeps from instruction to instruction, and room that it works in.
struct MatrixState {
  WeightTile shadow, active;
  std::vector<int16_t> activations, weights;
  std::vector<int32_t> sums;     ///< of i16 activations, as far as they fit 32 bits
  std::vector<int64_t> wideSums; ///< and all of them
  std::vector<float> floatActivations, floatWeights, floatSums;
};

/// One instruction on its way, with all that it needs. Index registers are added to the addresses
/// already.
struct Execution {
  const Configuration& configuration;
  const Kernels& kernels;
  Memory& memory;
  MatrixState& matrix;
  uint64_t& budget; ///< operations that may still be done
  const Insn& insn;
  const DescriptorBits& d;
  const DescriptorBits& second;
  Accessor accessor;

  int64_t operator[](int field) const { return insn.values[field]; }
  /// Before work of that many elements or products.
  void spend(int64_t operations) {
    if (static_cast<uint64_t>(operations) > budget)
      raise(FaultKind::kLimit, "asks for {} operations, {} are left", operations, budget);
    budget -= static_cast<uint64_t>(operations);
  }
};

/// visit(from, bytes) for the bytes of a box, in stretches as long as they go, each byte of a
/// repeated run once.
template <typename Visit>
void eachStretch(int64_t at, int64_t run,
                 std::array<std::pair<int64_t, int64_t>, 3> lengthsAndStrides, Visit visit) {
  for (auto& [length, stride] : lengthsAndStrides) {
    if (stride < 0) {
      at += (length - 1) * stride;
      stride = -stride;
    }
    if (stride == 0) length = 1;
  }
  std::sort(lengthsAndStrides.begin(), lengthsAndStrides.end(),
            [](const auto& a, const auto& b) { return a.second < b.second; });
  for (auto& [length, stride] : lengthsAndStrides)
    if (length > 1 && stride == run) {
      run *= length;
      length = 1;
    }
  const auto& [inner, middle, outer] = lengthsAndStrides;
  for (int64_t k = 0; k < outer.first; ++k)
    for (int64_t j = 0; j < middle.first; ++j)
      for (int64_t i = 0; i < inner.first; ++i)
        visit(at + k * outer.second + j * middle.second + i * inner.second, run);
}

void runDma(Execution& e);
void runMatrix(Execution& e);
void runRequant(Execution& e);
void runVector(Execution& e);

/// The least multiple-of-unit count: ceil(a / b).
inline int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// A box in the scratchpad as an interval, for a first look at whether two touch.
struct Interval {
  int64_t from, bytes;
  bool touches(const Interval& other) const {
    return from < other.from + other.bytes && other.from < from + bytes;
  }
};

/// One element, widened; little-endian.
inline int32_t elementAt(const uint8_t* at, Type type) {
  if (type == Type::kI8) return static_cast<int8_t>(*at);
  if (type == Type::kU8) return *at;
  if (type == Type::kI16) {
    int16_t half;
    std::memcpy(&half, at, sizeof half);
    return half;
  }
  int32_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
/// Its low bits, little-endian.
inline void storeElement(uint8_t* at, Type type, int32_t value) {
  if (type == Type::kI32)
    std::memcpy(at, &value, sizeof value);
  else if (type == Type::kI16)
    std::memcpy(at, &value, sizeof(int16_t));
  else
    *at = static_cast<uint8_t>(value);
}

/// A float of the scratchpad, widened; little-endian.
inline float floatAt(const uint8_t* at, Type type) {
  if (type == Type::kBf16) {
    uint16_t half;
    std::memcpy(&half, at, sizeof half);
    return cdl_bf16_to_f32(half);
  }
  float value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
/// Rounded to the type, to nearest even.
inline void storeFloat(uint8_t* at, Type type, float value) {
  const uint32_t bits = bitsOf(value);
  if (type == Type::kF32) {
    std::memcpy(at, &bits, sizeof bits);
    return;
  }
  const uint16_t half = cdl_f32_to_bf16(cdl_f32_of_bits(bits));
  std::memcpy(at, &half, sizeof half);
}

/// What a two-operand RESCALE rounds.
inline int64_t scaledSum(int64_t a, int64_t b, const Rescale& r) {
  return static_cast<int64_t>((static_cast<uint64_t>(a * r.aMult) << r.aShift) +
                              (static_cast<uint64_t>(b * r.bMult) << r.bShift));
}
/// clamp bounds of a result: those of the descriptor, or the type's for i32. Raises when they do
/// not fit the type.
struct Bounds {
  int32_t zero, low, high;
};
Bounds boundsOf(const Rescale& rescale, Type type);
/// The entry of a value in the table of its type; of i16 between two of them.
inline int32_t tableAt(const uint8_t* table, Type type, int32_t value) {
  return type == Type::kI16
             ? cdl_table_i16(reinterpret_cast<const int16_t*>(table), static_cast<int16_t>(value))
             : table[value - lowestOf(type)];
}
/// Raises for a left shift that could leave 63 bits with operands of that type.
void needShift(std::string_view what, int32_t shift, Type type);

} // namespace candela::npu
