#pragma once

#include "core/compiler/program/program.h"
#include "core/support/diagnostic.h"

namespace candela::program {

/// The textual form (.cdl). Grammar in docs/reference/cdl.md. Prints everything that the image
/// holds, so that image -> text -> image gives the same bytes.
///
///   program @main engines(1) {
///     space @host {host_mapped, align 64}
///     buffer %x input @host 150528 align 64
///     buffer %w constant @host 864 = resource "w" sha256 "..."
///     buffer %t temp @host 4096 at 128
///     [1] matmul @in %a[1,8,16]:f32, @in %b[1,16,4]:f32, @out %y[1,8,4]:f32 expr{max(add(acc, v2),
///     0.0)} waits(..) from "Conv_0":conv for 8 { ... }
///   }
///
/// A dense view at offset 0 prints its dims only; others add offset and strides, loop strides as
/// +c1*i0.
struct PrintOptions {
  std::string resourceDirectory; ///< as graph::PrintOptions
};
Result<std::string> print(const Program& program, const PrintOptions& options = {});

/// Parses one program; errors carry line and column; the result was verified.
Result<Program> parse(std::string_view text, const std::string& file, Diagnostics& diagnostics);

} // namespace candela::program
