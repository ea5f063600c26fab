#pragma once

#include <cstdio>
#include <functional>
#include <string>

#include "core/support/tensor.h"

namespace candela {

/// The whole file, read-only: a copy up to kCopiedBytes (mapped_file.h), mapped above. Failure:
/// not_found or io, naming the file. A directory is refused.
Result<Bytes> mapFile(const std::string& path);
/// The first `count` bytes of a regular file, all of a shorter one; empty where it cannot be read.
std::string startOf(const std::string& path, size_t count);

/// Writes beside the target and renames, so that an old file survives a full disk. Failure: io with
/// the path and the system's reason.
Status writeFile(const std::string& path, const void* data, uint64_t size);
/// The same with a function that writes; it returns false, with errno set, when that failed.
Status writeFile(const std::string& path, const std::function<bool(std::FILE*)>& write);

/// The path by which this process, and those that it forks, open what `descriptor` is; empty where
/// /proc is not mounted.
std::string pathOfDescriptor(int descriptor);

/// NumPy's .npy, versions 1 to 3, C or Fortran order, little-endian. Failure: bad_model naming the
/// file.
Result<Tensor> readNpy(const std::string& path);
/// The same of a file's bytes, which a tensor in C order shares where it can; `name` is the file's.
Result<Tensor> viewNpy(const Bytes& file, const std::string& name);
/// bf16 and storage types are written as the unsigned integers that hold them.
Status writeNpy(const std::string& path, const Tensor& tensor);

} // namespace candela
