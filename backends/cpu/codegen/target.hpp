// Where code is to run. Shows no LLVM.
#pragma once

#include "../isa.hpp"

#include <candela/backend.hpp>

namespace cpu {

/// What objects are made for. The default is this process.
struct Target {
  std::string triple = "x86_64-unknown-linux-gnu";
  bool isPic = true;
  /// Of a build ahead of time, a name in C: kernels are seen in their own object alone, which there
  /// is one of. Empty: of this process, kernels are seen by their names.
  std::string prefix;

  bool isAhead() const { return !prefix.empty(); }
};

/// What a device is asked for a build ahead of time, in the words of its options.
struct TargetRequest {
  std::string triple, cpu, features, name;
  bool isPic = false;
};

/// The best instruction set that code is generated for and that the requested processor has, tiles
/// left out: who has those must ask the system for them. Failures by name: UNSUPPORTED of a triple
/// that no code is generated for, or of a processor below the lowest tier; INVALID_ARGUMENT of what
/// LLVM does not know.
cdl::Status resolve(const TargetRequest& request, Target& target, const Isa*& isa);

/// The functions beside memcpy and memset that an object needs, with ", " between them; empty:
/// none.
std::string callsOf(const std::vector<char>& object);

/// An ELF object for `target` that holds one read-only symbol: `header`, then `payload`, from a
/// multiple of 64 bytes on, in a section of the same name. False: LLVM writes none.
bool constantObject(const Target& target, const Isa& isa, const std::string& symbol,
                    const std::string& header, const char* payload, uint64_t payloadBytes,
                    std::vector<char>& object);

} // namespace cpu
