#pragma once

#include "simulator/binary/binary.h"
#include "simulator/result.h"
#include "tools/candela/console.h"

namespace candela::tool {

/// The value, or the command ends: bad input.
template <typename T> T checkNpu(npu::Result<T> result) {
  if (!result) throw Failure(kBadInput, result.message());
  return *std::move(result);
}

/// Ends the command when the file is no binary of this instruction set.
npu::Binary readNpuBinary(const std::string& path);

} // namespace candela::tool
