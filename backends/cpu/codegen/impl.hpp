// What builder.cpp and codegen.cpp share; included by nothing else, as it brings in LLVM.
#pragma once

#include "builder.hpp"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <map>

namespace cpu {

struct Builder::Impl {
  const Isa& isa;
  llvm::LLVMContext& context;
  llvm::Function* function;
  llvm::IRBuilder<> ir;
  std::map<int, Value> args;

  Impl(const Isa& isa, llvm::Function* function)
      : isa(isa), context(function->getContext()), function(function), ir(context) {}
  llvm::Type* type(Ty ty, int lanes);
};

} // namespace cpu
