#include "isa.hpp"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cpu {

const std::vector<Isa>& allIsas() {
  static const std::vector<Isa> isas = {
      {Tier::V3, "x86-64-v3", "x86-64-v3", "", 32, 16, false, false, false},
      {Tier::AVX512, "avx512", "x86-64-v4", "-prefer-256-bit", 64, 32, true, false, false},
      {Tier::VNNI, "avx512vnni", "x86-64-v4", "-prefer-256-bit,+avx512vnni", 64, 32, true, true, false},
      {Tier::AMX, "amx", "x86-64-v4", "-prefer-256-bit,+avx512vnni,+amx-tile,+amx-int8", 64, 32, true, true, true},
  };
  return isas;
}

const Isa* findIsa(const std::string& name) {
  for (const Isa& isa : allIsas())
    if (name == isa.name) return &isa;
  return nullptr;
}

const Isa& isaOf(Tier tier) { return allIsas()[static_cast<size_t>(tier) - 1]; }

namespace {

struct Registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(unsigned leaf, unsigned sub) {
  Registers r;
  if (!__get_cpuid_count(leaf, sub, &r.a, &r.b, &r.c, &r.d)) return {};
  return r;
}

bool has(unsigned word, std::initializer_list<int> bits) {
  for (int bit : bits)
    if (!(word >> bit & 1)) return false;
  return true;
}

/// The register state that the operating system saves (XCR0); 0 without OSXSAVE.
uint64_t savedState() {
  if (!has(cpuid(1, 0).c, {27})) return 0;
  unsigned low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

/// The kernel gives the 8 KB of tile data to processes that ask (arch_prctl ARCH_REQ_XCOMP_PERM of state 18).
bool mayUseTiles() {
  static const bool granted = syscall(SYS_arch_prctl, 0x1023, 18) == 0;
  return granted;
}

} // namespace

std::vector<const Isa*> isasOfThisMachine() {
  // Intel SDM vol. 2, CPUID: leaf 1 ECX {SSE3 0, SSSE3 9, FMA 12, SSE4.1 19, SSE4.2 20, MOVBE 22, POPCNT 23, AVX 28,
  // F16C 29}, leaf 7 EBX {BMI1 3, AVX2 5, BMI2 8, AVX512F 16, DQ 17, CD 28, BW 30, VL 31} ECX {VNNI 11} EDX {AMX-TILE
  // 24, AMX-INT8 25}, leaf 0x80000001 ECX {LZCNT 5}.
  const Registers one = cpuid(1, 0), seven = cpuid(7, 0), extended = cpuid(0x80000001, 0);
  const uint64_t state = savedState();
  std::vector<const Isa*> found;
  const bool v3 = (state & 0x6) == 0x6 && has(one.c, {0, 9, 12, 19, 20, 22, 23, 28, 29}) && has(seven.b, {3, 5, 8}) &&
                  has(extended.c, {5});
  if (!v3) return found;
  found.push_back(&isaOf(Tier::V3));
  if ((state & 0xe6) != 0xe6 || !has(seven.b, {16, 17, 28, 30, 31})) return found;
  found.push_back(&isaOf(Tier::AVX512));
  if (!has(seven.c, {11})) return found;
  found.push_back(&isaOf(Tier::VNNI));
  if ((state & 0x60000) == 0x60000 && has(seven.d, {24, 25}) && mayUseTiles()) found.push_back(&isaOf(Tier::AMX));
  return found;
}

} // namespace cpu
