// A RESCALE that reads nothing but the sums of the convolution or product before it is done by the
// same kernel: the sums never lie in memory.
#pragma once

#include "contraction.hpp"

namespace cpu {

/// The RESCALE after an instruction, as one scale and one zero point per channel of the sums, and
/// one more that joins its result with another tensor.
struct Follower {
  std::vector<uint32_t> instrs; // that it does
  Operand y;                    // the last result, over the dims of the sums
  RescaleForm form;
  std::vector<double> scales, zeros; // per channel
  std::optional<JoinRescale> join;
  Operand other; // what is joined, over the dims of the sums
};

/// The follower of instruction `index`, whose result is `sums` with `channels` along dim
/// `channelDim`: a RESCALE of constants by channel right behind it, which alone reads the sums. Its
/// result may be written while the instruction reads. `joins`: with a RESCALE of two operands
/// behind it.
std::optional<Follower> followerOf(const Lowering& lowering, uint32_t index, const Operand& sums,
                                   int channelDim, bool joins);

/// The same of a RESCALE that is the last step of the epilogue of instruction `index`: of constants
/// by channel, behind the steps before it. `in`: the operands of the instruction, the result last.
std::optional<Follower> followerInEpilogue(const Lowering& lowering, uint32_t index,
                                           const cdl_expr_t& epilogue,
                                           const std::vector<Operand>& in, int channelDim,
                                           bool joins);

/// Lets the contraction requantize as the follower does, whose instructions are then done. Its y
/// and join are the caller's.
void follow(Lowering& lowering, const Follower& follower, int64_t groups, int64_t panels,
            Contraction& contraction);

/// What an epilogue adds to each channel, when it is a constant per channel and nothing else.
std::optional<std::vector<int32_t>> constantBias(const Lowering& lowering,
                                                 const cdl_expr_t& epilogue,
                                                 const std::vector<Operand>& in, int channelDim,
                                                 int64_t channels);

/// The plane of numbers per channel in panels of i32, f32 or f64: as many channels of each group in
/// `panels` panels, the rest 0.
Plane panelsOf(Lowering& lowering, const std::vector<double>& perChannel, int64_t groups,
               int64_t panels, uint8_t elem);

/// Whether a kernel may write the follower's result while it reads the inputs of `instr`: not where
/// the plan laid them over each other.
bool canWriteEarly(const Lowering& lowering, const cdl_instr_t& instr, const Follower& follower);

} // namespace cpu
