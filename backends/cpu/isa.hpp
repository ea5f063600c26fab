// The instruction sets that code is generated for. Tiers are chosen by feature bits, never by the
// name of a CPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cpu {

/// Stored in blobs: numbers stay. allIsas() has their order.
enum class Tier : uint8_t { V3 = 1, AVX512 = 2, VNNI = 3, AMX = 4, BF16 = 5, AVX_VNNI = 6 };

struct Isa {
  Tier tier;
  const char* name;     // what --isa takes
  const char* cpu;      // LLVM's name of the baseline
  const char* features; // and what comes on top of it
  int vectorBytes;
  int registers;         // vector registers
  bool hasMasks = false; // any prefix of a vector can be loaded and stored
  bool hasDot4 = false;  // u8 x s8 products of four, summed into i32, in one instruction
  bool hasBF16 = false;  // bf16 products of two, summed into f32, in one instruction
  bool hasTiles =
      false; // matrix products of 8-bit integers and of bf16 in tiles of 16 rows by 64 bytes

  int lanes(int elementBytes) const { return vectorBytes / elementBytes; }
};

/// Rises: the later ones are faster where a machine runs several. Each has the features of those
/// before it but for AVX-VNNI, of which machines with AVX-512 may have none.
const std::vector<Isa>& allIsas();
const Isa* findIsa(const std::string& name);
const Isa& isaOf(Tier tier);

/// What a tier needs and this machine or its operating system lacks, by name: "AVX2, BMI2"; empty
/// when it runs. The first call asks the operating system for the use of tiles: threads that run
/// such code must start later.
std::string missingFeatures(Tier tier);

/// What this machine and its operating system run, best last. Empty: not even the lowest tier.
std::vector<const Isa*> isasOfThisMachine();

} // namespace cpu
