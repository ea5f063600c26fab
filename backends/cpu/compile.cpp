// The library that compiles: Programs to binaries.
#include "compiler.hpp"

#include "emit/bands.hpp"
#include "emit/instructions.hpp"
#include "version.hpp"

#include <cstdlib>

namespace cpu {

namespace {

cdl::Status compile(const cdl_image_t* image, const void* const* constants, const Isa& isa,
                    Binary& binary) {
  Lowering lowering(image, constants, isa);
  for (uint32_t i = 1; i < image->instrs.count; ++i) {
    std::string why;
    if (!emitInstruction(lowering, i, why))
      return cdl::refused(i, CDL_REASON_VENDOR,
                          cdl::kindName(cdl_get_instr(image, i)->kind) + ": no kernel for " + why);
  }
  runInBands(lowering);
  if (std::getenv("CANDELA_CPU_DUMP")) std::fputs(lowering.assembly().c_str(), stderr);
  return lowering.finish(binary) ? cdl::ok()
                                 : cdl::error(CDL_INTERNAL, "LLVM: " + lowering.error());
}

} // namespace

} // namespace cpu

extern "C" __attribute__((visibility("default"))) const cpu::Compiler candela_cpu_compiler;
const cpu::Compiler candela_cpu_compiler = {cpu::kFormat, cpu::kVersion, cpu::compile};
