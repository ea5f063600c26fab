#pragma once

#include "simulator/binary/binary.h"
#include "simulator/result.h"
#include "tools/candela/support/console.h"

namespace CLI {
class App;
}

namespace candela::tool {

/// The value, or the command ends: bad input.
template <typename T> T checkNpu(npu::Result<T> result) {
  if (!result) throw Failure(kBadInput, result.message());
  return *std::move(result);
}

/// Ends the command when the file is no binary of this instruction set.
npu::Binary readNpuBinary(const std::string& path);

/// Adds `run` to the commands of `npu`.
void addNpuRun(CLI::App* npu, Console& console);

} // namespace candela::tool
