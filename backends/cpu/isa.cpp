#include "isa.hpp"

#include <algorithm>
#include <sstream>

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

const std::vector<Isa>& otherIsas() {
  static const std::vector<Isa> isas = {
      {.tier = Tier::V3,
       .name = "aarch64",
       .cpu = "generic",
       .features = "+neon",
       .vectorBytes = 32,
       .registers = 16,
       .arch = Arch::ARM64},
      {.tier = Tier::V3,
       .name = "aarch64-dotprod",
       .cpu = "generic",
       .features = "+neon,+dotprod",
       .vectorBytes = 32,
       .registers = 16,
       .arch = Arch::ARM64,
       .hasSignedDot4 = true},
      {.tier = Tier::V3,
       .name = "aarch64-i8mm",
       .cpu = "generic",
       .features = "+neon,+dotprod,+i8mm",
       .vectorBytes = 32,
       .registers = 16,
       .arch = Arch::ARM64,
       .hasDot4 = true},
      {.tier = Tier::V3,
       .name = "riscv64",
       .cpu = "generic-rv64",
       .features = "+m,+a,+f,+d,+c",
       .vectorBytes = 8,
       .registers = 16,
       .arch = Arch::RISCV64},
      {.tier = Tier::V3,
       .name = "armv7e-m",
       .cpu = "cortex-m4",
       .features = "+mclass,+dsp,+vfp4d16sp",
       .vectorBytes = 8,
       .registers = 8,
       .arch = Arch::THUMB,
       .scalesInF64 = false},
      {.tier = Tier::V3,
       .name = "armv7e-m-fp64",
       .cpu = "cortex-m7",
       .features = "+mclass,+dsp,+fp-armv8d16",
       .vectorBytes = 8,
       .registers = 8,
       .arch = Arch::THUMB},
      {.tier = Tier::V3,
       .name = "wasm32-simd128",
       .cpu = "generic",
       .features = "+simd128,+bulk-memory,+nontrapping-fptoint,+sign-ext",
       .vectorBytes = 16,
       .registers = 16,
       .arch = Arch::WASM32,
       .scalesInF32 = false,
       .scalesInF64 = false},
  };
  return isas;
}

namespace {

constexpr int kTileData = 18, kRequest = 0x1023; // a bit of XCR0; ARCH_REQ_XCOMP_PERM of arch_prctl

struct Machine {
  uint32_t words[kCpuWords] = {};
  uint32_t& at(CpuWord word) { return words[static_cast<size_t>(word)]; }
  uint32_t at(CpuWord word) const { return words[static_cast<size_t>(word)]; }

  Machine() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(1, 0, &a, &b, &c, &d)) at(CpuWord::ONE) = c;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
      at(CpuWord::SEVEN_B) = b;
      at(CpuWord::SEVEN_C) = c;
      at(CpuWord::SEVEN_D) = d;
    }
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d)) at(CpuWord::SEVEN_ONE_A) = a;
    if (__get_cpuid_count(0x80000001, 0, &a, &b, &c, &d)) at(CpuWord::EXTENDED) = c;
    if (!(at(CpuWord::ONE) >> 27 & 1)) return;
    __asm__("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    at(CpuWord::SAVED) = a;
    if (a >> kTileData & 1 && syscall(SYS_arch_prctl, kRequest, kTileData) == 0)
      at(CpuWord::GRANTED) = uint32_t(1) << kTileData;
  }
};

constexpr uint32_t bit(int index) { return uint32_t(1) << index; }

// Intel SDM vol. 2, CPUID; vol. 1, 13.3.
constexpr Feature kFeatures[] = {
    {Tier::V3, CpuWord::ONE, bit(0), "SSE3", "sse3"},
    {Tier::V3, CpuWord::ONE, bit(9), "SSSE3", "ssse3"},
    {Tier::V3, CpuWord::ONE, bit(19), "SSE4.1", "sse4.1"},
    {Tier::V3, CpuWord::ONE, bit(20), "SSE4.2", "sse4.2"},
    {Tier::V3, CpuWord::ONE, bit(22), "MOVBE", "movbe"},
    {Tier::V3, CpuWord::ONE, bit(23), "POPCNT", "popcnt"},
    {Tier::V3, CpuWord::EXTENDED, bit(5), "LZCNT", "lzcnt"},
    {Tier::V3, CpuWord::ONE, bit(28), "AVX", "avx"},
    {Tier::V3, CpuWord::ONE, bit(29), "F16C", "f16c"},
    {Tier::V3, CpuWord::ONE, bit(12), "FMA", "fma"},
    {Tier::V3, CpuWord::SEVEN_B, bit(3), "BMI1", "bmi"},
    {Tier::V3, CpuWord::SEVEN_B, bit(8), "BMI2", "bmi2"},
    {Tier::V3, CpuWord::SEVEN_B, bit(5), "AVX2", "avx2"},
    {Tier::V3, CpuWord::SAVED, 0x6, "a system that saves AVX registers", nullptr},
    {Tier::AVX_VNNI, CpuWord::SEVEN_ONE_A, bit(4), "AVX-VNNI", "avxvnni"},
    {Tier::AVX512, CpuWord::SEVEN_B, bit(16), "AVX512F", "avx512f"},
    {Tier::AVX512, CpuWord::SEVEN_B, bit(17), "AVX512DQ", "avx512dq"},
    {Tier::AVX512, CpuWord::SEVEN_B, bit(28), "AVX512CD", "avx512cd"},
    {Tier::AVX512, CpuWord::SEVEN_B, bit(30), "AVX512BW", "avx512bw"},
    {Tier::AVX512, CpuWord::SEVEN_B, bit(31), "AVX512VL", "avx512vl"},
    {Tier::AVX512, CpuWord::SAVED, 0xe6, "a system that saves AVX-512 registers", nullptr},
    {Tier::VNNI, CpuWord::SEVEN_C, bit(11), "AVX512_VNNI", "avx512vnni"},
    {Tier::BF16, CpuWord::SEVEN_ONE_A, bit(5), "AVX512_BF16", "avx512bf16"},
    {Tier::AMX, CpuWord::SEVEN_D, bit(22), "AMX-BF16", "amx-bf16"},
    {Tier::AMX, CpuWord::SEVEN_D, bit(24), "AMX-TILE", "amx-tile"},
    {Tier::AMX, CpuWord::SEVEN_D, bit(25), "AMX-INT8", "amx-int8"},
    {Tier::AMX, CpuWord::SAVED, bit(17) | bit(kTileData), "a system that saves tiles", nullptr},
    {Tier::AMX, CpuWord::GRANTED, bit(kTileData), "a system that grants tiles", nullptr},
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

std::vector<Feature> featuresOf(Tier tier) {
  std::vector<Feature> found;
  for (const Feature& feature : kFeatures)
    if (needs(tier, feature)) found.push_back(feature);
  return found;
}

const Isa* lowestOf(Arch arch) {
  for (const Isa& isa : otherIsas())
    if (isa.arch == arch) return &isa;
  return nullptr;
}

std::vector<std::string> needsOf(const Isa& isa) {
  std::vector<std::string> needs;
  if (isa.arch == Arch::X86) {
    for (const Feature& feature : featuresOf(isa.tier)) needs.push_back(feature.name);
    return needs;
  }
  std::istringstream words(isa.features);
  for (std::string word; std::getline(words, word, ',');) needs.push_back(word.substr(1));
  return needs;
}

std::string missingFeatures(Tier tier) {
  static const Machine machine;
  std::string missing;
  for (const Feature& feature : featuresOf(tier)) {
    if (!feature.llvm && !missing.empty()) continue; // no wonder
    if ((machine.at(feature.word) & feature.bits) != feature.bits)
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
