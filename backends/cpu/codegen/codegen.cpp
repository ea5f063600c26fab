#include "codegen.hpp"

#include "../isa.hpp"
#include "impl.hpp"

#include <llvm/Config/llvm-config.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <mutex>

namespace cpu {

struct Codegen::State {
  const Isa& isa;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module;
  std::unique_ptr<llvm::TargetMachine> machine;
  std::string error;

  explicit State(const Isa& isa) : isa(isa) {}

  /// The file of a module, which is used up; false sets error.
  bool emit(llvm::Module& m, llvm::CodeGenFileType type, llvm::SmallVectorImpl<char>& out) {
    llvm::raw_svector_ostream stream(out);
    llvm::legacy::PassManager passes;
    if (machine->addPassesToEmitFile(passes, stream, nullptr, type)) {
      error = "LLVM writes no object for this target";
      return false;
    }
    passes.run(m);
    return true;
  }
};

Codegen::Codegen(const Isa& isa) : state_(std::make_unique<State>(isa)) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  const char* triple = "x86_64-unknown-linux-gnu";
  std::string why;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, why);
  if (!target) {
    state_->error = why;
    return;
  }
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict; // products and sums stay apart but for fma
  // Default, not Aggressive: the emitters did the work.
  state_->machine.reset(target->createTargetMachine(triple, isa.cpu, isa.features, options,
                                                    llvm::Reloc::PIC_, llvm::CodeModel::Small,
                                                    llvm::CodeGenOptLevel::Default));
  state_->module = std::make_unique<llvm::Module>("candela", state_->context);
  state_->module->setTargetTriple(triple);
  state_->module->setDataLayout(state_->machine->createDataLayout());
}

Codegen::~Codegen() = default;

const std::string& Codegen::error() const { return state_->error; }
std::string Codegen::version() { return LLVM_VERSION_STRING; }

void Codegen::kernel(const std::string& name, const std::function<void(Builder&)>& body) {
  if (!state_->module) return;
  llvm::LLVMContext& context = state_->context;
  llvm::Type* pointer = llvm::PointerType::get(context, 0);
  llvm::Type* i64 = llvm::Type::getInt64Ty(context);
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer, i64, i64}, false);
  auto* function =
      llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, *state_->module);
  function->addFnAttr("target-cpu", state_->isa.cpu);
  function->addFnAttr("target-features", state_->isa.features);
  function->addFnAttr("prefer-vector-width", std::to_string(state_->isa.vectorBytes * 8));
  function->addFnAttr(llvm::Attribute::NoUnwind);
  function->addParamAttr(0, llvm::Attribute::NoAlias);
  Builder::Impl impl(state_->isa, function);
  llvm::BasicBlock* entry = llvm::BasicBlock::Create(context, "entry", function);
  llvm::BasicBlock* start = llvm::BasicBlock::Create(context, "start", function);
  impl.ir.SetInsertPoint(start);
  Builder builder(impl);
  body(builder);
  impl.ir.CreateRetVoid();
  impl.ir.SetInsertPoint(entry); // after the arguments that were loaded there
  impl.ir.CreateBr(start);
}

std::string Codegen::assembly() {
  if (!state_->module) return {};
  llvm::SmallVector<char, 0> text;
  const auto copy = llvm::CloneModule(*state_->module);
  return state_->emit(*copy, llvm::CodeGenFileType::AssemblyFile, text)
             ? std::string(text.begin(), text.end())
             : std::string();
}

std::vector<char> Codegen::object() {
  if (!state_->module) return {};
  llvm::raw_string_ostream complaint(state_->error);
  if (llvm::verifyModule(*state_->module, &complaint)) return {};
  llvm::SmallVector<char, 0> bytes;
  if (!state_->emit(*state_->module, llvm::CodeGenFileType::ObjectFile, bytes)) return {};
  return {bytes.begin(), bytes.end()};
}

} // namespace cpu
