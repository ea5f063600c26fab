// A RESCALE that reads nothing but the sums of the convolution or product before it is done by the same kernel: the sums
// never lie in memory.
#pragma once

#include "contraction.hpp"

namespace cpu {

/// The RESCALE after an instruction, as one scale and one zero point per channel of the sums.
struct Follower {
  const cdl_instr_t* instr = nullptr;
  Operand y;                                  // its result
  RescaleForm form;
  std::vector<double> scales, zeros;          // per channel
};

/// The follower of instruction `index`, whose result is `sums` with `channels` along dim `channelDim`: a RESCALE of
/// constants by channel right behind it, which alone reads the sums.
std::optional<Follower> followerOf(const Lowering& lowering, uint32_t index, const Operand& sums, int channelDim);

/// What an epilogue adds to each channel, when it is a constant per channel and nothing else.
std::optional<std::vector<int32_t>> constantBias(const Lowering& lowering, const cdl_expr_t& epilogue,
                                                 const std::vector<Operand>& in, int channelDim, int64_t channels);

/// Per channel into panels: `perGroup` channels of each group in `panels` panels, the rest 0.
Plane panelsOf(Lowering& lowering, const std::vector<double>& perChannel, int64_t groups, int64_t panels);

/// May a kernel write `y` while it reads the inputs of `instr`? Not where the plan laid them over each other.
bool canWriteEarly(const Lowering& lowering, const cdl_instr_t& instr, const Operand& y);

} // namespace cpu
