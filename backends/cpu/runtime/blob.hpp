// A stored executable: what compile made of one Program, for the machine that has its instruction
// set. Loading needs no LLVM and copies neither constants nor code.
//
// The file: BlobHeader, then four sections, each padded with zeros to a multiple of 64 bytes.
#pragma once

#include "binary.hpp"

#include <candela/backend.hpp>

namespace cpu {

struct BlobHeader {
  // These stand here in every format.
  char magic[4];
  uint32_t format;
  char madeBy[48]; // "cpu 0.1.0 with LLVM 19.1.7", zeros behind
  uint64_t size;   // of the whole blob
  uint64_t digest; // of the header with this field zero

  uint8_t image[32]; // hash of the Program
  uint64_t scratchBytes;
  uint32_t tier, kernels, calls, args;
  struct Section {
    uint64_t bytes, digest; // of the section with its padding
  } sections[4];            // calls, arguments, constants, code
};
static_assert(sizeof(BlobHeader) == 192);

/// Of a header, as its field says or is to say.
uint64_t digestOf(BlobHeader header);

/// Writes an executable of the Program `image`.
cdl::Status toBlob(const cdl_image_t* image, const Binary& binary, const cdl::Writer& to);

/// The executable in `blob`, made for `image`; constants and code stay where they are, so the blob
/// must be aligned to 64 bytes and outlive it. INCOMPATIBLE names what differs: another format,
/// version or Program, or an instruction set that this machine lacks; BAD_MODEL: damaged, and
/// where. Reading it touches nothing outside of it, and its tables are checked: every argument
/// begins inside of its memory. How far the code goes from there is not, and a checksum is no
/// signature: the machine code is trusted, so a blob must come from a trusted source.
cdl::Status fromBlob(const cdl_image_t* image, const void* blob, uint64_t size, Binary& binary);

} // namespace cpu
