// What codegen.cpp and target.cpp share of LLVM; included by nothing else, as it brings that in.
#pragma once

#include "target.hpp"

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>

namespace cpu {

/// Makes LLVM's targets known, once.
void initializeLlvm();
/// Null: *error says why.
std::unique_ptr<llvm::TargetMachine> targetMachine(const Target& target, const Isa& isa,
                                                   std::string& error);
/// The file of a module, which is used up; false: LLVM writes none for this target.
bool emitFile(llvm::TargetMachine& machine, llvm::Module& module, llvm::CodeGenFileType type,
              llvm::SmallVectorImpl<char>& out);

} // namespace cpu
