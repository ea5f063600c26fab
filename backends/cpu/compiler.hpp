// What lies between the plugin and the library that compiles: one exported table. LLVM is linked
// into that library alone, and the plugin opens it for the first compile, so that what only runs
// stored executables never loads it.
#pragma once

#include "codegen/target.hpp"
#include "runtime/binary.hpp"
#include "runtime/object_code.hpp"

#include <candela/backend.hpp>

namespace cpu {

/// Compiles a checked image for `isa`: what it refuses, or fails at, the Status says.
using CompileFn = cdl::Status(const cdl_image_t* image, const void* const* constants,
                              const Isa& isa, Binary& binary);

/// As codegen/target.hpp says.
using ResolveFn = cdl::Status(const TargetRequest& request, Target& target, const Isa*& isa);

/// The same for a build ahead of time, by what `resolve` found.
using CompileAheadFn = cdl::Status(const cdl_image_t* image, const void* const* constants,
                                   const Isa& isa, const Target& target, ObjectCode& object);

/// What the library exports as "candela_cpu_compiler".
struct Compiler {
  uint32_t format;     // kFormat of its build; nothing else is read where it differs
  const char* version; // kVersion
  CompileFn* compile;
  ResolveFn* resolve;
  CompileAheadFn* compileAhead;
};

inline constexpr const char* kCompilerSymbol = "candela_cpu_compiler";
inline constexpr const char* kCompilerFile = "candela_cpu_compiler.so";

/// The compiler of this process; opens its library when it is first asked. The file lies beside the
/// plugin, or, where the backend is linked in, in a folder of CANDELA_PLUGIN_PATH, in lib/candela
/// beside the program's folder or in candela beside the program. Any thread. NOT_FOUND names the
/// places, INCOMPATIBLE the versions; the next call tries again.
cdl::Status openCompiler(const Compiler*& compiler);

} // namespace cpu
