// The CPU as a device: machine code for whole Programs, made by LLVM, run on a fixed set of
// threads.
#pragma once

#include "codegen/target.hpp"
#include "isa.hpp"
#include "runtime/executable.hpp"
#include "runtime/threads.hpp"

#include <candela/backend.hpp>

namespace cpu {

class Cpu final : public cdl::ProgramBackend {
public:
  Cpu();
  cdl::Status open(uint32_t index) override;
  cdl::Status compile(const cdl_image_t* image, const void* const* constants,
                      std::unique_ptr<cdl::Executable>& executable) override;
  cdl::Status load(const cdl_image_t* image, const void* blob, uint64_t size,
                   std::unique_ptr<cdl::Executable>& executable) override;
  bool emits() const override { return true; }
  /// In cycles of 1 GHz, by which hosts count where no clock is declared.
  cdl::Status cost(const cdl_image_t* image, uint32_t instr, cdl_cost_t& cost) override;

private:
  cdl::Status make(const cdl_image_t* image, Binary binary,
                   std::unique_ptr<cdl::Executable>& executable);

  /// The instruction set that the options say, of this machine.
  cdl::Status openHere();
  /// What the options say of a build ahead of time.
  cdl::Status openAhead();

  const Isa* isa_ = nullptr;
  Isa withoutFloats_; // the same where RESCALE is asked for in integers
  Target target_;     // of a build ahead of time; else of this process
  std::unique_ptr<Threads> threads_;
};

/// What is claimed beyond the required rows of the profiles.
void claimOptional(cdl::Capabilities& capabilities);
/// Matrix products and convolutions of bf16, for instruction sets that have them.
void claimProductsOfBF16(cdl::Capabilities& capabilities);

} // namespace cpu
