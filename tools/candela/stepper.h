#pragma once

#include <functional>
#include <map>
#include <optional>

#include "core/program/program.h"
#include "core/runtime/bundle/bundle.h"
#include "core/runtime/plugin/plugin.h"
#include "tools/candela/console.h"

namespace candela::tool {

/// One instruction as a Program of its own: what it reads is input, what it writes is inout.
struct LoneInstr {
  program::Program program;
  std::vector<uint32_t> origin;  ///< per buffer: that of the whole Program
  std::vector<Tensor> inputs;    ///< INPUT and INOUT buffers, in order: what it received
  std::vector<Tensor> got, want; ///< INOUT buffers, in order: from the backend, and from the reference
};

/// What one execution of an instruction gave, against the reference on the memory that it received.
struct Verdict {
  uint32_t partition = 0, instr = 0; ///< instr counts from 1
  std::string backend, name;         ///< "cpu", "conv2d [3] 'Conv_0'"
  std::string node, op, kind, types; ///< types: "f32, f32 -> f32"
  uint64_t elements = 0;             ///< of its results
  uint64_t different = 0;            ///< not the same number
  uint64_t outside = 0;              ///< beyond their bound
  double largest = 0; ///< of the differences over their bounds; infinite where only the same number is right
  /// The element where that is; empty texts when all are the same.
  std::string where, expected, found;
  double difference = 0, bound = 0;
  std::string stray; ///< an element outside of its results that it changed; else empty

  bool passed() const { return outside == 0 && stray.empty(); }
};

/// Runs the Programs of a bundle instruction by instruction, each on its own backend and on the reference.
///
/// Bounds: integers from integers are exact, integers from floats may be one step off. A float may be off by
/// (16 + 4 * sqrt(length of its sums) + 4 * steps of its expression) roundings of the largest result, or, where sums
/// cancel, of what the same instruction gives on magnitudes.
class Stepper {
public:
  using Devices =
      std::map<std::string, std::shared_ptr<runtime::Device>>; ///< by backend; what is missing is on the host
  /// Throws Failure when a Program cannot be read.
  Stepper(const runtime::Bundle& bundle, Devices devices);

  uint64_t executions() const; ///< of all Programs, loops counted
  /// In the order of the bundle's steps. `visit` sees each execution; false ends the run. Returns the outputs, or
  /// nothing when it was ended. Throws Failure when the backend or the reference cannot run an instruction alone.
  std::optional<std::vector<Tensor>> run(std::span<const Tensor> inputs,
                                         const std::function<bool(const Verdict&, const LoneInstr&)>& visit);

private:
  const runtime::Bundle& bundle_;
  Devices devices_;
  std::vector<program::Program> programs_; ///< per partition
};

} // namespace candela::tool
