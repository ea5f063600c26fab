#include <sys/mman.h>
#include <unistd.h>

#include "conformance/tiers/models/networks.h"
#include "core/compiler/import/import.h"

// examples/digits/digits.onnx, byte for byte, inside of the program.
asm(".pushsection .rodata\n"
    ".balign 64\n"
    ".hidden candela_digits_begin\n"
    ".hidden candela_digits_end\n"
    ".global candela_digits_begin\n"
    ".global candela_digits_end\n"
    "candela_digits_begin:\n"
    ".incbin \"" CANDELA_DIGITS "\"\n"
    "candela_digits_end:\n"
    ".popsection\n");
extern "C" const char candela_digits_begin[], candela_digits_end[];

namespace candela::conformance::tiers::models {

Result<graph::Graph> importDigits(int64_t batch) {
  const auto size = static_cast<size_t>(candela_digits_end - candela_digits_begin);
  // A file without a folder: import reads files.
  const int file = memfd_create("digits.onnx", MFD_CLOEXEC);
  const bool isWritten =
      file >= 0 && write(file, candela_digits_begin, size) == static_cast<ssize_t>(size);
  auto model = isWritten ? import::onnx_io::readModel(fmt::format("/proc/self/fd/{}", file))
                         : Result<import::onnx_io::Model>(
                               failure(Code::io, "no memory for a file of {} bytes", size));
  if (file >= 0) close(file);
  CDL_TRY(model.status());
  CDL_ASSIGN(graph::Graph graph, import::importModel(*model, {.dims = {{"N", batch}}}));
  graph.name = "digits";
  return graph;
}

} // namespace candela::conformance::tiers::models
