#include "isa.hpp"

#include <algorithm>

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cpu {

const std::vector<Isa>& allIsas() {
  static const std::vector<Isa> isas = {
      {.tier = Tier::V3,
       .name = "x86-64-v3",
       .cpu = "x86-64-v3",
       .features = "",
       .vectorBytes = 32,
       .registers = 16},
      {.tier = Tier::AVX_VNNI,
       .name = "avxvnni",
       .cpu = "x86-64-v3",
       .features = "+avxvnni",
       .vectorBytes = 32,
       .registers = 16,
       .hasDot4 = true},
      {.tier = Tier::AVX512,
       .name = "avx512",
       .cpu = "x86-64-v4",
       .features = "-prefer-256-bit",
       .vectorBytes = 64,
       .registers = 32,
       .hasMasks = true},
      {.tier = Tier::VNNI,
       .name = "avx512vnni",
       .cpu = "x86-64-v4",
       .features = "-prefer-256-bit,+avx512vnni",
       .vectorBytes = 64,
       .registers = 32,
       .hasMasks = true,
       .hasDot4 = true},
      {.tier = Tier::BF16,
       .name = "avx512bf16",
       .cpu = "x86-64-v4",
       .features = "-prefer-256-bit,+avx512vnni,+avx512bf16",
       .vectorBytes = 64,
       .registers = 32,
       .hasMasks = true,
       .hasDot4 = true,
       .hasBF16 = true},
      {.tier = Tier::AMX,
       .name = "amx",
       .cpu = "x86-64-v4",
       .features = "-prefer-256-bit,+avx512vnni,+avx512bf16,+amx-tile,+amx-int8,+amx-bf16",
       .vectorBytes = 64,
       .registers = 32,
       .hasMasks = true,
       .hasDot4 = true,
       .hasBF16 = true,
       .hasTiles = true},
  };
  return isas;
}

const Isa* findIsa(const std::string& name) {
  for (const Isa& isa : allIsas())
    if (name == isa.name) return &isa;
  return nullptr;
}

const Isa& isaOf(Tier tier) {
  const auto isIt = [&](const Isa& isa) { return isa.tier == tier; };
  return *std::find_if(allIsas().begin(), allIsas().end(), isIt);
}

namespace {

// Where CPUID says what there is: leaf 1 ECX, leaf 7 EBX, ECX and EDX, its subleaf 1 EAX, leaf
// 0x80000001 ECX; XCR0, the registers that the operating system saves, 0 without OSXSAVE; and those
// that it grants to processes that ask, by their bits of XCR0.
enum Word { kOne, kSevenB, kSevenC, kSevenD, kSevenOneA, kExtended, kSaved, kGranted, kWords };
constexpr int kTileData = 18, kRequest = 0x1023; // a bit of XCR0; ARCH_REQ_XCOMP_PERM of arch_prctl

struct Machine {
  uint32_t words[kWords] = {};

  Machine() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(1, 0, &a, &b, &c, &d)) words[kOne] = c;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
      words[kSevenB] = b;
      words[kSevenC] = c;
      words[kSevenD] = d;
    }
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d)) words[kSevenOneA] = a;
    if (__get_cpuid_count(0x80000001, 0, &a, &b, &c, &d)) words[kExtended] = c;
    if (!(words[kOne] >> 27 & 1)) return;
    __asm__("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    words[kSaved] = a;
    if (words[kSaved] >> kTileData & 1 && syscall(SYS_arch_prctl, kRequest, kTileData) == 0)
      words[kGranted] = uint32_t(1) << kTileData;
  }
};

struct Feature {
  Tier tier; // the lowest that needs it
  Word word;
  uint32_t bits; // all of them
  const char* name;
};

constexpr uint32_t bit(int index) { return uint32_t(1) << index; }

// Intel SDM vol. 2, CPUID; vol. 1, 13.3.
constexpr Feature kFeatures[] = {
    {Tier::V3, kOne, bit(0), "SSE3"},
    {Tier::V3, kOne, bit(9), "SSSE3"},
    {Tier::V3, kOne, bit(19), "SSE4.1"},
    {Tier::V3, kOne, bit(20), "SSE4.2"},
    {Tier::V3, kOne, bit(22), "MOVBE"},
    {Tier::V3, kOne, bit(23), "POPCNT"},
    {Tier::V3, kExtended, bit(5), "LZCNT"},
    {Tier::V3, kOne, bit(28), "AVX"},
    {Tier::V3, kOne, bit(29), "F16C"},
    {Tier::V3, kOne, bit(12), "FMA"},
    {Tier::V3, kSevenB, bit(3), "BMI1"},
    {Tier::V3, kSevenB, bit(8), "BMI2"},
    {Tier::V3, kSevenB, bit(5), "AVX2"},
    {Tier::V3, kSaved, 0x6, "a system that saves AVX registers"},
    {Tier::AVX_VNNI, kSevenOneA, bit(4), "AVX-VNNI"},
    {Tier::AVX512, kSevenB, bit(16), "AVX512F"},
    {Tier::AVX512, kSevenB, bit(17), "AVX512DQ"},
    {Tier::AVX512, kSevenB, bit(28), "AVX512CD"},
    {Tier::AVX512, kSevenB, bit(30), "AVX512BW"},
    {Tier::AVX512, kSevenB, bit(31), "AVX512VL"},
    {Tier::AVX512, kSaved, 0xe6, "a system that saves AVX-512 registers"},
    {Tier::VNNI, kSevenC, bit(11), "AVX512_VNNI"},
    {Tier::BF16, kSevenOneA, bit(5), "AVX512_BF16"},
    {Tier::AMX, kSevenD, bit(22), "AMX-BF16"},
    {Tier::AMX, kSevenD, bit(24), "AMX-TILE"},
    {Tier::AMX, kSevenD, bit(25), "AMX-INT8"},
    {Tier::AMX, kSaved, bit(17) | bit(kTileData), "a system that saves tiles"},
    {Tier::AMX, kGranted, bit(kTileData), "a system that grants tiles"},
};

/// Its place in allIsas().
int64_t rankOf(Tier tier) { return &isaOf(tier) - allIsas().data(); }

/// Whether code of the tier uses the feature. All tiers have the features of those before them, but
/// for AVX-VNNI: AVX-512 has instructions of its own for the same.
bool needs(Tier tier, const Feature& feature) {
  if (feature.tier == Tier::AVX_VNNI) return tier == Tier::AVX_VNNI;
  return rankOf(feature.tier) <= rankOf(tier);
}

} // namespace

std::string missingFeatures(Tier tier) {
  static const Machine machine;
  std::string missing;
  for (const Feature& feature : kFeatures) {
    if (feature.word >= kSaved && !missing.empty()) continue; // no wonder
    if (needs(tier, feature) && (machine.words[feature.word] & feature.bits) != feature.bits)
      missing += (missing.empty() ? "" : ", ") + std::string(feature.name);
  }
  return missing;
}

std::vector<const Isa*> isasOfThisMachine() {
  std::vector<const Isa*> found;
  for (const Isa& isa : allIsas())
    if (missingFeatures(isa.tier).empty()) found.push_back(&isa);
  return found;
}

} // namespace cpu
