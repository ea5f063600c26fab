#include "codegen.hpp"

#include "../isa.hpp"
#include "impl.hpp"
#include "llvm.hpp"

#include <llvm/Config/llvm-config.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <sched.h>
#include <system_error>
#include <thread>

namespace cpu {

namespace {

/// Kernels that follow each other are often alike, and the same part compiles them.
constexpr size_t kKernelsInARow = 4;
constexpr size_t kMostParts = 8;

/// That this process may use.
size_t processors() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
    return std::max(1U, std::thread::hardware_concurrency());
  return static_cast<size_t>(CPU_COUNT(&allowed));
}

} // namespace

void initializeLlvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser(); // of what functions ask CPUID by
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    LLVMInitializeAArch64AsmParser();
    LLVMInitializeARMTargetInfo();
    LLVMInitializeARMTarget();
    LLVMInitializeARMTargetMC();
    LLVMInitializeARMAsmPrinter();
    LLVMInitializeARMAsmParser();
    LLVMInitializeRISCVTargetInfo();
    LLVMInitializeRISCVTarget();
    LLVMInitializeRISCVTargetMC();
    LLVMInitializeRISCVAsmPrinter();
    LLVMInitializeRISCVAsmParser();
    LLVMInitializeWebAssemblyTargetInfo();
    LLVMInitializeWebAssemblyTarget();
    LLVMInitializeWebAssemblyTargetMC();
    LLVMInitializeWebAssemblyAsmPrinter();
    LLVMInitializeWebAssemblyAsmParser();
  });
}

std::unique_ptr<llvm::TargetMachine> targetMachine(const Target& target, const Isa& isa,
                                                   std::string& error) {
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(target.triple, error);
  if (!found) return nullptr;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict; // products and sums stay apart but for fma
  options.EABIVersion = llvm::EABI::GNU;              // ARM: memcpy and memset by the names of C
  if (isa.arch == Arch::RISCV64) options.MCOptions.ABIName = "lp64d";
  // RISC-V: code that may lie anywhere, as long as it lies together.
  const llvm::CodeModel::Model model =
      isa.arch == Arch::RISCV64 ? llvm::CodeModel::Medium : llvm::CodeModel::Small;
  // Default, not Aggressive: the emitters did the work.
  return std::unique_ptr<llvm::TargetMachine>(
      found->createTargetMachine(target.triple, isa.cpu, isa.features, options,
                                 target.isPic ? llvm::Reloc::PIC_ : llvm::Reloc::Static, model,
                                 llvm::CodeGenOptLevel::Default));
}

bool emitFile(llvm::TargetMachine& machine, llvm::Module& module, llvm::CodeGenFileType type,
              llvm::SmallVectorImpl<char>& out) {
  llvm::raw_svector_ostream stream(out);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type)) return false;
  passes.run(module);
  return true;
}

/// Kernels of one module, with an LLVM context of their own, so that parts compile side by side.
class Codegen::Part {
public:
  Part(const Isa& isa, const Target& target);

  void add(const std::string& name, const std::function<void(Builder&)>& body);
  void addEntry(const std::string& name, const std::vector<Ty>& parameters,
                const std::function<void(Builder&)>& body);
  std::vector<char> object();
  std::string assembly();
  const std::string& error() const { return error_; }

private:
  /// The file of a module, which is used up; false sets error.
  bool emit(llvm::Module& module, llvm::CodeGenFileType type, llvm::SmallVectorImpl<char>& out);
  /// Writes what a function does, with a block of its own for the arguments that are loaded once.
  void write(llvm::Function* function, const std::function<void(Builder&)>& body,
             llvm::Value* result);

  const Isa& isa_;
  const Target& target_;
  llvm::LLVMContext context_;
  std::unique_ptr<llvm::Module> module_; ///< null: LLVM has no such target
  std::unique_ptr<llvm::TargetMachine> machine_;
  std::string error_;
};

Codegen::Part::Part(const Isa& isa, const Target& target) : isa_(isa), target_(target) {
  machine_ = targetMachine(target, isa, error_);
  if (!machine_) return;
  module_ = std::make_unique<llvm::Module>("candela", context_);
  module_->setTargetTriple(target.triple);
  module_->setDataLayout(machine_->createDataLayout());
}

bool Codegen::Part::emit(llvm::Module& module, llvm::CodeGenFileType type,
                         llvm::SmallVectorImpl<char>& out) {
  if (emitFile(*machine_, module, type, out)) return true;
  error_ = "LLVM writes no object for this target";
  return false;
}

void Codegen::Part::add(const std::string& name, const std::function<void(Builder&)>& body) {
  if (!module_) return;
  llvm::Type* pointer = llvm::PointerType::get(context_, 0);
  llvm::Type* i64 = llvm::Type::getInt64Ty(context_);
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context_), {pointer, i64, i64}, false);
  auto* function = llvm::Function::Create(
      type, target_.isAhead() ? llvm::Function::InternalLinkage : llvm::Function::ExternalLinkage,
      name, *module_);
  function->addFnAttr("target-cpu", isa_.cpu);
  function->addFnAttr("target-features", isa_.features);
  function->addFnAttr("prefer-vector-width", std::to_string(isa_.vectorBytes * 8));
  function->addParamAttr(0, llvm::Attribute::NoAlias);
  write(function, body, nullptr);
}

void Codegen::Part::addEntry(const std::string& name, const std::vector<Ty>& parameters,
                             const std::function<void(Builder&)>& body) {
  if (!module_) return;
  llvm::Type* i32 = llvm::Type::getInt32Ty(context_);
  llvm::Type* size = llvm::Type::getIntNTy(context_, static_cast<unsigned>(8 * isa_.pointer()));
  std::vector<llvm::Type*> types;
  for (const Ty ty : parameters)
    types.push_back(ty == Ty::Ptr ? llvm::PointerType::get(context_, 0) : size);
  auto* function = llvm::Function::Create(llvm::FunctionType::get(i32, types, false),
                                          llvm::Function::ExternalLinkage, name, *module_);
  // It runs before it is known what the processor has.
  const Isa* lowest = lowestOf(isa_.arch);
  function->addFnAttr("target-cpu", lowest ? lowest->cpu : "x86-64");
  function->addFnAttr("target-features", lowest ? lowest->features : "");
  write(function, body, llvm::ConstantInt::get(i32, 0));
}

void Codegen::Part::write(llvm::Function* function, const std::function<void(Builder&)>& body,
                          llvm::Value* result) {
  function->addFnAttr(llvm::Attribute::NoUnwind);
  Builder::Impl impl(isa_, function);
  llvm::BasicBlock* entry = llvm::BasicBlock::Create(context_, "entry", function);
  llvm::BasicBlock* start = llvm::BasicBlock::Create(context_, "start", function);
  impl.ir.SetInsertPoint(start);
  Builder builder(impl);
  body(builder);
  if (result)
    impl.ir.CreateRet(result);
  else
    impl.ir.CreateRetVoid();
  impl.ir.SetInsertPoint(entry); // after the arguments that were loaded there
  impl.ir.CreateBr(start);
}

std::string Codegen::Part::assembly() {
  if (!module_) return {};
  llvm::SmallVector<char, 0> text;
  const auto copy = llvm::CloneModule(*module_);
  return emit(*copy, llvm::CodeGenFileType::AssemblyFile, text)
             ? std::string(text.begin(), text.end())
             : std::string();
}

std::vector<char> Codegen::Part::object() {
  if (!module_) return {};
  llvm::raw_string_ostream complaint(error_);
  if (llvm::verifyModule(*module_, &complaint)) return {};
  llvm::SmallVector<char, 0> bytes;
  if (!emit(*module_, llvm::CodeGenFileType::ObjectFile, bytes)) return {};
  return {bytes.begin(), bytes.end()};
}

Codegen::Codegen(const Isa& isa, Target target) : isa_(isa), target_(std::move(target)) {
  initializeLlvm();
}

Codegen::~Codegen() = default;

std::string Codegen::version() { return LLVM_VERSION_STRING; }

Codegen::Part& Codegen::nextPart() {
  const size_t at = target_.isAhead() ? 0 : kernels_++ / kKernelsInARow % kMostParts;
  if (at == parts_.size()) parts_.push_back(std::make_unique<Part>(isa_, target_));
  return *parts_[at];
}

void Codegen::kernel(const std::string& name, const std::function<void(Builder&)>& body) {
  nextPart().add(name, body);
}

void Codegen::entry(const std::string& name, const std::vector<Ty>& parameters,
                    const std::function<void(Builder&)>& body) {
  nextPart().addEntry(name, parameters, body);
}

std::string Codegen::error() const {
  for (const auto& part : parts_)
    if (!part->error().empty()) return part->error();
  return {};
}

std::string Codegen::assembly() {
  std::string text;
  for (const auto& part : parts_) text += part->assembly();
  return text;
}

std::vector<std::vector<char>> Codegen::objects() {
  std::vector<std::vector<char>> objects(parts_.size());
  std::vector<std::exception_ptr> failures(parts_.size()); // a lack of memory
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < parts_.size(); i = next++) try {
        objects[i] = parts_[i]->object();
      } catch (...) {
        failures[i] = std::current_exception();
      }
  };
  const size_t most = processors();
  std::vector<std::thread> helpers;
  try {
    while (helpers.size() + 1 < std::min(most, parts_.size())) helpers.emplace_back(work);
  } catch (const std::system_error&) {
    // With the threads that there are; the caller's is one.
  }
  work();
  for (std::thread& helper : helpers) helper.join();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
  return objects;
}

} // namespace cpu
