#include "backend.hpp"

#include "emit/instructions.hpp"

#include <charconv>
#include <cstdlib>

namespace cpu {

Cpu::Cpu() : ProgramBackend("cpu", "0.1.0") {
  describe("x86-64 processors: LLVM compiles each Program for its shapes");
  option("isa", "the instruction set to generate code for; best: the best that this machine has",
         "best|x86-64-v3|avx512|avx512vnni|amx", "best");
  option("threads", "threads that work on one execution, the caller's among them; 0: one per processor", "int", "1");
  claim(cdl::Profile::FP32);
  claim(cdl::Profile::INT8);
  claim(cdl::Profile::INT16);
  claimOptional(capabilities());
}

cdl::Status Cpu::open(uint32_t) {
  const std::vector<const Isa*> here = isasOfThisMachine();
  if (here.empty())
    return cdl::error(CDL_UNSUPPORTED, "this processor lacks AVX2, FMA, F16C or BMI2, which the lowest tier (x86-64-v3) needs");
  const std::string wanted = options().get("isa");
  for (const Isa* isa : here)
    if (wanted == "best" || wanted == isa->name) isa_ = isa;
  if (!isa_) {
    std::string names;
    for (const Isa* isa : here) names += (names.empty() ? "" : ", ") + std::string(isa->name);
    return cdl::error(findIsa(wanted) ? CDL_UNSUPPORTED : CDL_INVALID_ARGUMENT,
                      "isa=" + wanted + ": this machine has " + names);
  }
  const std::string text = options().get("threads");
  int count = 0;
  const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (failure != std::errc() || stop != text.data() + text.size() || count < 0 || count > 1024)
    return cdl::error(CDL_INVALID_ARGUMENT, "threads=" + text + ": a number of 0 to 1024");
  if (count == 0) count = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  threads_ = std::make_unique<Threads>(count);
  return cdl::ok();
}

cdl::Status Cpu::compile(const cdl_image_t* image, const void* const* constants,
                         std::unique_ptr<cdl::Executable>& executable) {
  Lowering lowering(image, constants, *isa_);
  for (uint32_t i = 1; i < image->instrs.count; ++i) {
    std::string why;
    if (!emitInstruction(lowering, i, why))
      return cdl::refused(i, CDL_REASON_VENDOR, cdl::kindName(cdl_get_instr(image, i)->kind) + ": no kernel for " + why);
  }
  if (std::getenv("CANDELA_CPU_DUMP")) std::fputs(lowering.assembly().c_str(), stderr);
  Binary binary;
  if (!lowering.finish(binary)) return cdl::error(CDL_INTERNAL, "LLVM: " + lowering.error());
  auto made = std::make_unique<CpuExecutable>(image, std::move(binary), *threads_);
  cdl::Status status = made->place();
  if (status.isOk()) executable = std::move(made);
  return status;
}

} // namespace cpu

using cpu::Cpu;
CDL_BACKEND(Cpu)
