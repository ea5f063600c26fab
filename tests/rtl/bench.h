#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <type_traits>

#include "verilated.h"

namespace candela::rtl {

/// One verilated module and its clock. Registers without a reset begin with random bits of `seed`.
/// A cycle: set inputs, settle(), read outputs, and decide by them what else to set; then edge().
/// Outputs between edge() and the next settle() are of no cycle.
template <typename Module> struct Bench {
  explicit Bench(int seed) {
    context.randReset(2);
    context.randSeed(seed);
    top = std::make_unique<Module>(&context);
    top->clk_i = 0;
    top->rst_ni = 0;
    settle();
    edge();
    top->rst_ni = 1;
    settle();
  }
  ~Bench() { top->final(); }
  Module* operator->() { return top.get(); }

  void settle() { top->eval(); }
  void edge() {
    top->clk_i = 1;
    top->eval();
    top->clk_i = 0;
    ++cycle;
  }

  VerilatedContext context;
  std::unique_ptr<Module> top;
  int64_t cycle = 0;
};

/// Random numbers of a fixed seed.
struct Dice {
  explicit Dice(uint32_t seed) : engine(seed) {}
  /// Of low..high, both included.
  int64_t of(int64_t low, int64_t high) {
    return low + static_cast<int64_t>((uint64_t{engine()} << 32 | engine()) %
                                      static_cast<uint64_t>(high - low + 1));
  }
  /// True in `percent` of 100 cases.
  bool chance(int percent) { return of(0, 99) < percent; }
  std::mt19937 engine;
};

/// The value of the `bits` low bits of a number, signed.
inline int64_t signedBits(uint64_t value, int bits) {
  return static_cast<int64_t>(value << (64 - bits)) >> (64 - bits);
}

/// A port of any width, one number or words of 32 bits: writes or reads `bits` (up to 64) from bit
/// `lsb` on.
template <typename Port> void setBits(Port& port, int lsb, int bits, uint64_t value) {
  if constexpr (std::is_integral_v<Port>) {
    const uint64_t mask = (bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1) << lsb;
    port = static_cast<Port>((port & ~mask) | (value << lsb & mask));
  } else {
    for (int i = 0, n = 0; i < bits; i += n) {
      const int at = (lsb + i) % 32;
      n = std::min(bits - i, 32 - at);
      const auto mask = static_cast<uint32_t>(((uint64_t{1} << n) - 1) << at);
      auto& word = port[static_cast<size_t>((lsb + i) / 32)];
      word = (word & ~mask) | (static_cast<uint32_t>(value >> i << at) & mask);
    }
  }
}
template <typename Port> uint64_t getBits(const Port& port, int lsb, int bits) {
  if constexpr (std::is_integral_v<Port>) {
    return uint64_t{port} >> lsb & (bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1);
  } else {
    uint64_t value = 0;
    for (int i = 0, n = 0; i < bits; i += n) {
      const int at = (lsb + i) % 32;
      n = std::min(bits - i, 32 - at);
      value |= (port[static_cast<size_t>((lsb + i) / 32)] >> at & ((uint64_t{1} << n) - 1)) << i;
    }
    return value;
  }
}

} // namespace candela::rtl
