// The library that compiles: Programs to binaries.
#include "compiler.hpp"

#include "emit/bands.hpp"
#include "emit/entry.hpp"
#include "emit/instructions.hpp"
#include "version.hpp"

#include <cstdlib>

namespace cpu {

namespace {

/// All calls, with the kernels that they need.
cdl::Status lower(Lowering& lowering) {
  const cdl_image_t* image = lowering.image;
  for (uint32_t i = 1; i < image->instrs.count; ++i) {
    std::string why;
    if (!emitInstruction(lowering, i, why))
      return cdl::refused(i, CDL_REASON_VENDOR,
                          cdl::kindName(cdl_get_instr(image, i)->kind) + ": no kernel for " + why);
  }
  runInBands(lowering);
  if (std::getenv("CANDELA_CPU_DUMP")) std::fputs(lowering.assembly().c_str(), stderr);
  return cdl::ok();
}

cdl::Status compile(const cdl_image_t* image, const void* const* constants, const Isa& isa,
                    Binary& binary) {
  Lowering lowering(image, constants, isa);
  if (cdl::Status status = lower(lowering); !status.isOk()) return status;
  return lowering.finish(binary) ? cdl::ok()
                                 : cdl::error(CDL_INTERNAL, "LLVM: " + lowering.error());
}

cdl::Status compileAhead(const cdl_image_t* image, const void* const* constants, const Isa& isa,
                         const Target& target, ObjectCode& object) {
  if (const std::string why = whyNoEntry(image); !why.empty())
    return cdl::error(CDL_UNSUPPORTED, why);
  Lowering lowering(image, constants, isa, target);
  if (cdl::Status status = lower(lowering); !status.isOk()) return status;
  if (!lowering.finishAhead(object)) return cdl::error(CDL_INTERNAL, "LLVM: " + lowering.error());
  if (const std::string calls = callsOf(object.code); !calls.empty())
    return cdl::error(CDL_UNSUPPORTED, "target=" + target.triple + " (" + isa.name +
                                           "): it has no instructions for what this model "
                                           "computes, and would call " +
                                           calls);
  const std::string header(reinterpret_cast<const char*>(&object.header), sizeof object.header);
  return constantObject(target, isa, target.prefix + "_weights", header, object.weights.data(),
                        object.weights.size(), object.weightsObject)
             ? cdl::ok()
             : cdl::error(CDL_INTERNAL, "LLVM writes no object for " + target.triple);
}

} // namespace

} // namespace cpu

extern "C" __attribute__((visibility("default"))) const cpu::Compiler candela_cpu_compiler;
const cpu::Compiler candela_cpu_compiler = {cpu::kFormat, cpu::kVersion, cpu::compile, cpu::resolve,
                                            cpu::compileAhead};
