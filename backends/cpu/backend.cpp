#include "backend.hpp"

#include "compiler.hpp"
#include "costs.hpp"
#include "runtime/blob.hpp"
#include "version.hpp"

#include <algorithm>
#include <charconv>

namespace cpu {

Cpu::Cpu() : ProgramBackend("cpu", kVersion) {
  describe("x86-64 processors: LLVM compiles each Program for its shapes");
  option("isa", "the instruction set to generate code for; best: the best that this machine has",
         "best|x86-64-v3|avxvnni|avx512|avx512vnni|avx512bf16|amx", "best");
  option("bf16",
         "products of bf16 in bf16. native: where the instruction set has them; always: elsewhere "
         "too, by two products of f32, which is slower",
         "native|always", "native");
  option("rescale",
         "what RESCALE computes in. native: floats, where the instruction set rounds products and "
         "sums of them once; integers: as the others have it, to the same bits",
         "native|integers", "native");
  option("threads",
         "threads that work on one execution, the caller's among them; 0: one per processor", "int",
         "1");
  option("band_bytes",
         "what the values inside of a group may hold at once while it runs by bands of rows; 0: no "
         "groups",
         "int", "1048576");
  option(
      "target",
      "a build ahead of time, for a machine that LLVM calls by this triple, whose object code is "
      "emitted and not run; nothing: this process",
      "string", "");
  option("target_cpu",
         "of a build ahead of time: LLVM's name of the processor; nothing: x86-64-v3, generic "
         "(aarch64), generic-rv64, cortex-m4 (thumb), generic with simd128 (wasm32)",
         "string", "");
  option("target_features", "of a build ahead of time: +FEATURE and -FEATURE, with commas",
         "string", "");
  option("target_name", "of a build ahead of time: what all symbols begin with", "string", "model");
  option("target_pic", "of a build ahead of time: code that may lie anywhere", "no|yes", "no");
  claim(cdl::Profile::FP32);
  claim(cdl::Profile::INT8);
  claim(cdl::Profile::INT16);
  claimOptional(capabilities());
}

cdl::Status Cpu::openAhead() {
  const Compiler* compiler = nullptr;
  const auto text = [this](const char* name) { return std::string(options().get(name)); };
  cdl::Status status = openCompiler(compiler);
  if (!status.isOk()) return status;
  return compiler->resolve({text("target"), text("target_cpu"), text("target_features"),
                            text("target_name"), text("target_pic") == "yes"},
                           target_, isa_);
}

cdl::Status Cpu::openHere() {
  const std::vector<const Isa*> here = isasOfThisMachine();
  if (here.empty())
    return cdl::error(CDL_UNSUPPORTED, "this processor lacks " + missingFeatures(Tier::V3) +
                                           ", which the lowest tier (x86-64-v3) needs");
  const std::string wanted = options().get("isa");
  for (const Isa* isa : here)
    if (wanted == "best" || wanted == isa->name) isa_ = isa;
  if (!isa_) {
    std::string names;
    for (const Isa* isa : here) names += (names.empty() ? "" : ", ") + std::string(isa->name);
    const Isa* known = findIsa(wanted);
    const std::string lacks = known ? "; it lacks " + missingFeatures(known->tier) : "";
    return cdl::error(known ? CDL_UNSUPPORTED : CDL_INVALID_ARGUMENT,
                      "isa=" + wanted + ": this machine has " + names + lacks);
  }
  return cdl::ok();
}

cdl::Status Cpu::open(uint32_t) {
  const bool isAhead = std::string(options().get("target")) != "";
  if (cdl::Status status = isAhead ? openAhead() : openHere(); !status.isOk()) return status;
  if (options().get("rescale") == "integers") {
    withoutFloats_ = *isa_;
    withoutFloats_.scalesInF32 = false;
    withoutFloats_.scalesInF64 = false;
    isa_ = &withoutFloats_;
  }
  if (isa_->hasBF16 || options().get("bf16") == "always") claimProductsOfBF16(capabilities());
  const std::string text = options().get("threads");
  int count = 0;
  const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (failure != std::errc() || stop != text.data() + text.size() || count < 0 || count > 1024)
    return cdl::error(CDL_INVALID_ARGUMENT, "threads=" + text + ": a number of 0 to 1024");
  if (count == 0) count = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  threads_ = std::make_unique<Threads>(count);
  if (const int given = threads_->count(); given < count) {
    threads_.reset();
    return cdl::error(CDL_OUT_OF_MEMORY, "threads=" + std::to_string(count) +
                                             ": the system gives only " + std::to_string(given));
  }
  return cdl::ok();
}

cdl::Status Cpu::compile(const cdl_image_t* image, const void* const* constants,
                         std::unique_ptr<cdl::Executable>& executable) {
  const Compiler* compiler = nullptr;
  cdl::Status status = openCompiler(compiler);
  if (status.isOk() && target_.isAhead()) {
    ObjectCode object;
    status = compiler->compileAhead(image, constants, *isa_, target_, object);
    if (status.isOk()) executable = std::make_unique<AheadExecutable>(std::move(object));
    return status;
  }
  Binary binary;
  if (status.isOk()) status = compiler->compile(image, constants, *isa_, binary);
  return status.isOk() ? make(image, std::move(binary), executable) : status;
}

cdl::Status Cpu::load(const cdl_image_t* image, const void* blob, uint64_t size,
                      std::unique_ptr<cdl::Executable>& executable) {
  if (target_.isAhead())
    return cdl::error(CDL_UNSUPPORTED, "this device was opened with target=" + target_.triple +
                                           ": it runs no stored executables");
  Binary binary;
  cdl::Status status = fromBlob(image, blob, size, binary);
  return status.isOk() ? make(image, std::move(binary), executable) : status;
}

cdl::Status Cpu::cost(const cdl_image_t* image, uint32_t instr, cdl_cost_t& cost) {
  const Costs costs(*isa_, threads_->count());
  const double taken = instr ? costs.nanoseconds(image, instr) : costs.nanoseconds(image);
  cost.latency_cycles = static_cast<uint64_t>(std::min(taken, 9e18));
  cost.busy_cycles[0] = cost.latency_cycles;
  return cdl::ok();
}

cdl::Status Cpu::make(const cdl_image_t* image, Binary binary,
                      std::unique_ptr<cdl::Executable>& executable) {
  auto made = std::make_unique<CpuExecutable>(image, std::move(binary), *threads_);
  cdl::Status status = made->place();
  if (status.isOk()) executable = std::move(made);
  return status;
}

} // namespace cpu

using cpu::Cpu;
CDL_BACKEND(Cpu)
