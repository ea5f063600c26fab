#include "target.hpp"

#include "llvm.hpp"

#include <llvm/ADT/Twine.h>
#include <llvm/IR/Constants.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <cctype>

namespace cpu {

namespace {

/// The words between commas.
std::vector<std::string> wordsOf(const std::string& list) {
  std::vector<std::string> words;
  for (size_t from = 0; from <= list.size() && !list.empty();) {
    const size_t comma = std::min(list.find(',', from), list.size());
    words.push_back(list.substr(from, comma - from));
    from = comma + 1;
  }
  return words;
}

bool isNameInC(const std::string& name) {
  const auto isPlain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && std::all_of(name.begin(), name.end(), isPlain) &&
         !(name[0] >= '0' && name[0] <= '9');
}

/// X86: that or none that code is generated for.
Arch archOf(const llvm::Triple& triple) {
  switch (triple.getArch()) {
  case llvm::Triple::aarch64: return Arch::ARM64;
  case llvm::Triple::riscv64: return Arch::RISCV64;
  case llvm::Triple::thumb: return Arch::THUMB;
  case llvm::Triple::wasm32: return Arch::WASM32;
  default: return Arch::X86;
  }
}

/// LLVM's name of the processor that is meant where none is named.
std::string lowestCpuOf(Arch arch) { return arch == Arch::X86 ? "x86-64-v3" : lowestOf(arch)->cpu; }

cdl::Status checkTriple(const std::string& text, const llvm::Triple& triple) {
  if (triple.getArch() == llvm::Triple::UnknownArch)
    return cdl::error(CDL_INVALID_ARGUMENT, "target=" + text + ": LLVM knows no such processor");
  const bool isKnown = triple.getArch() == llvm::Triple::x86_64 || archOf(triple) != Arch::X86;
  const bool isWeb = archOf(triple) == Arch::WASM32;
  const bool isOfSystem =
      (isWeb ? triple.isOSWASI() : triple.isOSLinux()) || triple.getOS() == llvm::Triple::UnknownOS;
  const bool isOfFormat = isWeb ? triple.isOSBinFormatWasm() : triple.isOSBinFormatELF();
  const bool isLp64 = triple.getEnvironment() != llvm::Triple::GNUX32 &&
                      triple.getEnvironment() != llvm::Triple::GNUILP32;
  if (!isKnown || !isOfSystem || !isOfFormat || !isLp64)
    return cdl::error(CDL_UNSUPPORTED,
                      "target=" + text +
                          ": code is generated for x86_64, aarch64, riscv64 and thumb (v7em and "
                          "later), as ELF, with pointers of 64 bits on the first three, for Linux "
                          "or no system, and for wasm32");
  return cdl::ok();
}

/// That LLVM knows the processor and every feature by name.
cdl::Status checkWords(const TargetRequest& request, const std::string& cpu,
                       const llvm::MCSubtargetInfo& known) {
  if (!known.isCPUStringValid(cpu))
    return cdl::error(CDL_INVALID_ARGUMENT,
                      "target_cpu=" + cpu + ": LLVM knows no such processor of " + request.triple);
  for (const std::string& word : wordsOf(request.features)) {
    const bool isSigned = word.size() > 1 && (word[0] == '+' || word[0] == '-');
    const auto isIt = [&](const llvm::SubtargetFeatureKV& each) {
      return isSigned && word.substr(1) == each.Key;
    };
    const auto all = known.getAllProcessorFeatures();
    if (std::none_of(all.begin(), all.end(), isIt))
      return cdl::error(CDL_INVALID_ARGUMENT,
                        "target_features=" + request.features + ": '" + word +
                            "' is no +FEATURE or -FEATURE that LLVM knows of " + request.triple);
    if (word.rfind("+amx-", 0) == 0)
      return cdl::error(CDL_UNSUPPORTED,
                        "target_features=" + request.features + ": '" + word +
                            "': a program has to ask its system for tiles, which object code does "
                            "not");
  }
  return cdl::ok();
}

/// The names of what an instruction set needs and the processor lacks.
std::string missingOf(const llvm::MCSubtargetInfo& processor, const Isa& isa) {
  std::string missing;
  const auto need = [&](const std::string& name, const std::string& feature) {
    if (!processor.checkFeatures("+" + feature)) missing += (missing.empty() ? "" : ", ") + name;
  };
  if (isa.arch != Arch::X86)
    for (const std::string& each : needsOf(isa)) need(each, each);
  else
    for (const Feature& feature : featuresOf(isa.tier))
      if (feature.llvm) need(feature.name, feature.llvm);
  return missing;
}

} // namespace

cdl::Status resolve(const TargetRequest& request, Target& target, const Isa*& isa) {
  initializeLlvm();
  const llvm::Triple triple(llvm::Triple::normalize(request.triple));
  if (cdl::Status status = checkTriple(request.triple, triple); !status.isOk()) return status;
  if (!isNameInC(request.name))
    return cdl::error(CDL_INVALID_ARGUMENT, "target_name=" + request.name + ": no name in C");
  std::string error;
  const llvm::Target* llvmTarget = llvm::TargetRegistry::lookupTarget(triple.str(), error);
  if (!llvmTarget)
    return cdl::error(CDL_UNSUPPORTED, "target=" + request.triple + ": LLVM: " + error);
  const Arch arch = archOf(triple);
  if (arch == Arch::WASM32 && request.isPic)
    return cdl::error(CDL_UNSUPPORTED, "target_pic=yes: where code of WebAssembly lies is the "
                                       "linker's, and no code of it may lie anywhere");
  const std::string cpu = request.cpu.empty() ? lowestCpuOf(arch) : request.cpu;
  const std::unique_ptr<llvm::MCSubtargetInfo> known(
      llvmTarget->createMCSubtargetInfo(triple.str(), "", ""));
  if (cdl::Status status = checkWords(request, cpu, *known); !status.isOk()) return status;
  // Who names no processor means the lowest one of its architecture.
  const Isa* least = request.cpu.empty() ? lowestOf(arch) : nullptr;
  const std::string features = (least ? std::string(least->features) + "," : "") + request.features;
  const std::unique_ptr<llvm::MCSubtargetInfo> processor(
      llvmTarget->createMCSubtargetInfo(triple.str(), cpu, features));
  target = {triple.str(), request.isPic, request.name};
  const std::vector<Isa>& all = arch == Arch::X86 ? allIsas() : otherIsas();
  const Isa* lowest = nullptr;
  for (const Isa& each : all) {
    if (each.arch != arch || each.hasTiles) continue;
    if (!lowest) lowest = &each;
    if (missingOf(*processor, each).empty()) isa = &each;
  }
  if (isa) return cdl::ok();
  return cdl::error(CDL_UNSUPPORTED, "target_cpu=" + cpu + ": it lacks " +
                                         missingOf(*processor, *lowest) +
                                         ", which the lowest tier (" + lowest->name + ") needs");
}

std::string callsOf(const std::vector<char>& object) {
  const llvm::MemoryBufferRef bytes({object.data(), object.size()}, "code.o");
  llvm::Expected<std::unique_ptr<llvm::object::ObjectFile>> file =
      llvm::object::ObjectFile::createObjectFile(bytes);
  if (!file) return llvm::toString(file.takeError());
  std::string calls;
  for (const llvm::object::SymbolRef& symbol : (*file)->symbols()) {
    const uint32_t flags = llvm::cantFail(symbol.getFlags());
    const std::string name = llvm::cantFail(symbol.getName()).str();
    const bool isOfC = name.empty() || name == "memcpy" || name == "memset" ||
                       name == "__stack_pointer"; // of WebAssembly, which the linker defines
    if ((flags & llvm::object::SymbolRef::SF_Undefined) && !isOfC)
      calls += (calls.empty() ? "" : ", ") + name;
  }
  return calls;
}

bool constantObject(const Target& target, const Isa& isa, const std::string& symbol,
                    const std::string& header, const char* payload, uint64_t payloadBytes,
                    std::vector<char>& object) {
  std::string error;
  const std::unique_ptr<llvm::TargetMachine> machine = targetMachine(target, isa, error);
  if (!machine) return false;
  llvm::LLVMContext context;
  llvm::Module module("candela", context);
  module.setTargetTriple(target.triple);
  module.setDataLayout(machine->createDataLayout());
  const auto bytes = [&](const char* data, uint64_t size) {
    return llvm::ConstantDataArray::getString(context, llvm::StringRef(data, size), false);
  };
  llvm::Constant* content = llvm::ConstantStruct::getAnon(
      context, {bytes(header.data(), header.size()), bytes(payload, payloadBytes)}, true);
  auto* global = new llvm::GlobalVariable(module, content->getType(), true,
                                          llvm::GlobalValue::ExternalLinkage, content, symbol);
  global->setAlignment(llvm::Align(64));
  global->setSection(".rodata." + symbol);
  llvm::SmallVector<char, 0> out;
  if (!emitFile(*machine, module, llvm::CodeGenFileType::ObjectFile, out)) return false;
  object.assign(out.begin(), out.end());
  return true;
}

} // namespace cpu
