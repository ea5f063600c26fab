#include "conformance/judge/primitive_bounds.h"

#include "conformance/judge/elementwise_bounds.h"
#include "conformance/judge/scaled_bounds.h"
#include "conformance/judge/scatter_bounds.h"
#include "conformance/judge/sum_bounds.h"

namespace candela::conformance::judge {

Result<Expectation> primitiveBounds(const program::Program& program,
                                    std::span<const Tensor> inputs) {
  if (program.instrs.size() != 1)
    return failure(Code::unsupported, "bounds of a program of {} instructions",
                   program.instrs.size());
  const program::Instr& instr = program.instrs[0];
  if (isScaledFloatProduct(instr)) return scaledBounds(program, inputs);
  if (!isPrimitive(instr.kind))
    return failure(Code::unsupported, "{} is no primitive", kindName(instr.kind));
  if (isElementwiseKind(instr.kind)) return elementwiseBounds(program, inputs);
  if (isFloatSum(instr)) return sumBounds(program, inputs);
  // Rounds of a loop each scatter elsewhere: the oracle follows them, and is exact but where places
  // come twice.
  if (instr.kind == CDL_KIND_SCATTER && program.loops.empty())
    return scatterBounds(program, inputs);
  CDL_ASSIGN(Expectation expected, exactBounds(program, inputs));
  const bool isTruth = instr.outputs[0].elem == Elem::bool_; // 0 or 1, nothing else
  if (instr.kind == CDL_KIND_GATHER || instr.kind == CDL_KIND_TABLE || isTruth)
    expected.bits.assign(expected.bits.size(), true);
  return expected;
}

} // namespace candela::conformance::judge
