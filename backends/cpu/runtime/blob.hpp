// A stored executable: what compile made of one Program, for the machine that has its instruction set. Loading needs no
// LLVM.
#pragma once

#include "executable.hpp"

namespace cpu {

/// The bytes of an executable for the Program `image`.
std::vector<char> toBlob(const cdl_image_t* image, const Binary& binary);

/// The executable in `blob`, made for `image`. INCOMPATIBLE names what differs: another format, version or Program, or an
/// instruction set that this machine lacks; BAD_MODEL: damaged. Nothing outside of the blob is read.
cdl::Status fromBlob(const cdl_image_t* image, const void* blob, uint64_t size, Binary& binary);

} // namespace cpu
