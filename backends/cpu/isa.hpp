// The instruction sets that code is generated for. Tiers are chosen by feature bits, never by the
// name of a CPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cpu {

/// Stored in blobs: numbers stay. allIsas() has their order.
enum class Tier : uint8_t { V3 = 1, AVX512 = 2, VNNI = 3, AMX = 4, BF16 = 5, AVX_VNNI = 6 };

/// What a builder asks for the form of an operation.
enum class Arch : uint8_t { X86, ARM64, RISCV64, THUMB, WASM32 };

struct Isa {
  Tier tier = Tier::V3;
  const char* name = "";     // what --isa takes
  const char* cpu = "";      // LLVM's name of the baseline
  const char* features = ""; // and what comes on top of it
  int vectorBytes = 0;
  int registers = 0; // vector registers
  Arch arch = Arch::X86;
  bool hasMasks = false; // any prefix of a vector can be loaded and stored
  bool hasDot4 = false;  // u8 x s8 products of four, summed into i32, in one instruction
  bool hasBF16 = false;  // bf16 products of two, summed into f32, in one instruction
  bool hasTiles =
      false; // matrix products of 8-bit integers and of bf16 in tiles of 16 rows by 64 bytes
  bool hasSignedDot4 = false; // the same of s8 x s8
  // A product of f32 and a sum are rounded once, in one instruction: RESCALE may take that.
  bool scalesInF32 = true;
  bool scalesInF64 = true; // the same of f64

  /// In bytes.
  int pointer() const { return arch == Arch::THUMB || arch == Arch::WASM32 ? 4 : 8; }
  int lanes(int elementBytes) const { return vectorBytes / elementBytes; }
};

/// Rises: the later ones are faster where a machine runs several. Each has the features of those
/// before it but for AVX-VNNI, of which machines with AVX-512 may have none.
const std::vector<Isa>& allIsas();
const Isa* findIsa(const std::string& name);
const Isa& isaOf(Tier tier);

/// Of builds ahead of time for other processors than x86, which rises within an architecture: what
/// `features` says is what the processor has to have. 64-bit ARM has vectors as x86-64-v3 has, each
/// in two registers, and so the sums of the same elements in the same order; where there are no
/// vectors two floats go side by side.
const std::vector<Isa>& otherIsas();
/// The first one of an architecture; null: x86.
const Isa* lowestOf(Arch arch);
/// What an instruction set needs of a processor or its system, by name.
std::vector<std::string> needsOf(const Isa& isa);

/// Where an x86 processor says what it has: words of CPUID (leaf 1 ECX, leaf 7 EBX, ECX and EDX,
/// its subleaf 1 EAX, leaf 0x80000001 ECX); XCR0, the registers that the operating system saves, 0
/// without OSXSAVE; and those that it grants to processes that ask, by their bits of XCR0.
enum class CpuWord : uint8_t {
  ONE,
  SEVEN_B,
  SEVEN_C,
  SEVEN_D,
  SEVEN_ONE_A,
  EXTENDED,
  SAVED,
  GRANTED
};
inline constexpr int kCpuWords = 8;

/// What a tier needs beyond the one below it.
struct Feature {
  Tier tier; // the lowest that needs it
  CpuWord word;
  uint32_t bits; // all of them
  const char* name;
  const char* llvm; // LLVM's name; null: of the operating system
};
/// Those of a tier and of the ones below it.
std::vector<Feature> featuresOf(Tier tier);

/// What a tier needs and this machine or its operating system lacks, by name: "AVX2, BMI2"; empty
/// when it runs. The first call asks the operating system for the use of tiles: threads that run
/// such code must start later.
std::string missingFeatures(Tier tier);

/// What this machine and its operating system run, best last. Empty: not even the lowest tier.
std::vector<const Isa*> isasOfThisMachine();

} // namespace cpu
