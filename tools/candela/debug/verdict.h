#pragma once

#include <span>

#include "core/compiler/program/program.h"

namespace candela::tool {

/// What one execution gave, against what is right for the memory that it received.
///
/// Of one instruction: integers from integers are exact, integers from floats may be one step off.
/// A float may be off by (16 + 4 * sqrt(length of its sums) + 4 * steps of its expression)
/// roundings of the largest result, or, where sums cancel, of what the same instruction gives on
/// magnitudes. Of several: 2e-4 of the largest result.
struct Verdict {
  uint32_t partition = 0, instr = 0; ///< instr counts from 1
  std::string backend, name;         ///< "cpu", "conv2d [3] 'Conv_0'"
  std::string node, op, kind, types; ///< types: "f32, f32 -> f32"
  uint64_t elements = 0;             ///< of its results
  uint64_t different = 0;            ///< not the same number
  uint64_t outside = 0;              ///< beyond their bound
  /// of the differences over their bounds; infinite where only the same number is right
  double largest = 0;
  /// The element where that is; empty texts when all are the same.
  std::string where, expected, found;
  double difference = 0, bound = 0;
  std::string stray;  ///< an element outside of its results that it changed; else empty
  Shape worst;        ///< index of that element in the view of the result; of one instruction
  bool judged = true; ///< false: an op that only its plugin knows, taken as the backend gave it

  bool passed() const { return outside == 0 && stray.empty(); }
};

/// kernels of a whole Program may round elsewhere than those of lone instructions
constexpr double kWholeBound = 2e-4;

/// The right results of a Program: by soft, or by the reference where soft cannot run it or
/// `byReference` is said.
Result<std::vector<Tensor>> oracle(const program::Program& program, std::span<const Tensor> inputs,
                                   bool byReference);

/// Names and types of an instruction; the rest is as nothing was compared.
Verdict describe(const program::Program& program, uint32_t instr);

/// Whether an instruction has a result in it.
bool isWritten(const program::Program& program, uint32_t buffer);

/// Compares what a backend gave with what is right: INOUT buffers, in order. `exact`: every bit
/// counts.
Verdict judge(const program::Program& program, std::span<const Tensor> inputs,
              std::span<const Tensor> got, std::span<const Tensor> want, bool exact = false);

} // namespace candela::tool
