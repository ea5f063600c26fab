// What the compiler makes of one Program and what a stored executable holds. Knows neither LLVM nor
// the emitters.
#pragma once

#include "../isa.hpp"
#include "aligned.hpp"

#include <candela/cdl.h>

namespace cpu {

/// Of the records below, of what kernels expect of their callers, and of the library that compiles:
/// what differs in it does not work together.
inline constexpr uint32_t kFormat = 5;

/// Where an argument of a call lies: a buffer of the image, or one of the two that the backend
/// adds.
struct Arg {
  static constexpr uint32_t kScratch = UINT32_MAX; // memory of one execution
  static constexpr uint32_t kOwn = UINT32_MAX - 1; // constants, part of the executable
  uint32_t buffer = 0;
  uint32_t reserved = 0;
  int64_t offset = 0;                         // bytes
  int64_t perLoop[CDL_MAX_LOOP_NESTING] = {}; // bytes per value of the loop variables, outer first
};

/// One kernel on some arguments; its units are independent of each other. It does the units first
/// .. first + units - 1, and so many of them again `turns` times in all, each time `stride`
/// further: what a band takes of every channel. Calls of one group may follow each other in any
/// order, and several of them share arguments.
struct Call {
  uint32_t instr = 0;
  uint32_t kernel = 0;
  uint64_t units = 0;
  uint32_t firstArg = 0, args = 0;
  uint64_t first = 0, turns = 1, stride = 0;

  uint64_t allUnits() const { return units * turns; }
};

/// All that is stored of an executable. Constants and code lie in `made` where they were compiled,
/// in the blob where they were loaded from one.
struct Binary {
  Tier tier = Tier::V3;
  std::string compiler; // "LLVM 19.1.7"
  uint64_t scratchBytes = 0;
  uint32_t kernels = 0;    // their names are k0, k1, ...
  std::vector<Call> calls; // in the order of the instructions
  std::vector<Arg> args;
  // constants: those of the image that kernels read, and the backend's own
  const char* own = nullptr;
  uint64_t ownBytes = 0;
  const char* code = nullptr; // objects.hpp
  uint64_t codeBytes = 0;

  struct Made {
    AlignedBytes own, code;
  } made;
};

} // namespace cpu
