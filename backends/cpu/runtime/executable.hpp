// What compile made of one Program: machine code and the list of its calls. Holds no type of LLVM and none of the
// emitters, so that a stored executable runs without them.
#pragma once

#include "../isa.hpp"
#include "aligned.hpp"
#include "code.hpp"
#include "threads.hpp"

#include <candela/backend.hpp>

namespace cpu {

/// Where an argument of a call lies: a buffer of the image, or one of the two that the backend adds.
struct Arg {
  static constexpr uint32_t kScratch = UINT32_MAX;      // memory of one execution
  static constexpr uint32_t kOwn = UINT32_MAX - 1;      // constants that the backend made, part of the executable
  uint32_t buffer = 0;
  uint32_t reserved = 0;
  int64_t offset = 0;                                   // bytes
  int64_t perLoop[CDL_MAX_LOOP_NESTING] = {};           // bytes per value of the loop variables, outer first
};

/// One kernel on some arguments; its units 0 .. units - 1 are independent of each other.
struct Call {
  uint32_t instr = 0;
  uint32_t kernel = 0;
  uint64_t units = 0;
  uint32_t firstArg = 0, args = 0;
};

/// All that is stored of an executable.
struct Binary {
  Tier tier = Tier::V3;
  uint64_t scratchBytes = 0;
  uint32_t kernels = 0;           // their names are k0, k1, ...
  std::vector<Call> calls;        // in the order of the instructions
  std::vector<Arg> args;
  AlignedBytes own;               // constants of the backend's own
  std::vector<char> object;       // ELF
};

class CpuExecutable final : public cdl::Executable {
public:
  CpuExecutable(const cdl_image_t* image, Binary binary, Threads& threads);
  /// Places the code. Once, before execute.
  cdl::Status place();

  cdl::Status execute(const cdl::Addresses& buffers) override;
  uint64_t scratchBytes() const override { return binary_.scratchBytes; }
  const Binary& binary() const { return binary_; }

private:
  struct Job {
    KernelFn kernel;
    uint64_t units;
    size_t firstPointer;
    uint32_t instr;
    bool endsInstr; // the last call of one execution of it
  };

  const cdl_image_t* image_;
  Binary binary_;
  Threads& threads_;
  Code code_;
  std::vector<KernelFn> kernels_;
  std::vector<uint32_t> firstCall_; // per instruction, and one past the last
};

} // namespace cpu
